import { useLayoutEffect, useRef } from 'preact/hooks';
import { MAX_INLINE_CHARS, PlainText } from './long-text.tsx';
import { createMarkdownView, type MarkdownView } from './markdown.ts';

/** A formatted answer; one too long to be laid out again on every token is shown as plain text. */
export function MarkdownText(props: { text: string; isComplete: boolean }) {
  return props.text.length > MAX_INLINE_CHARS ? <PlainText text={props.text} /> : <FormattedText {...props} />;
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
