import { useLayoutEffect, useRef } from 'preact/hooks';
import { PlainText } from './long-text.tsx';
import { createMarkdownView, type MarkdownView } from './markdown.ts';

/** Formatting a longer text when its conversation is opened would block the page for more than a second. */
const MAX_FORMATTED_CHARS = 400_000;

/** A formatted answer; a very long one is shown as plain text. */
export function MarkdownText(props: { text: string; isComplete: boolean }) {
  return props.text.length > MAX_FORMATTED_CHARS ? <PlainText text={props.text} /> : <FormattedText {...props} />;
}

function FormattedText({ text, isComplete }: { text: string; isComplete: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<MarkdownView | null>(null);
  useLayoutEffect(() => {
    view.current ??= createMarkdownView(host.current!);
    view.current.update(text, isComplete);
  }, [text, isComplete]);
  return <div class="markdown" dir="auto" ref={host} />;
}
