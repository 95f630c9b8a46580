import { useLayoutEffect, useRef } from 'preact/hooks';
import { MAX_INLINE_CHARS, PlainText } from './long-text.tsx';
import { createMarkdownView, type MarkdownView } from './markdown.ts';

/** A formatted answer; one too long to be laid out again on every token is shown as plain text. */
export function MarkdownText({ text }: { text: string }) {
  return text.length > MAX_INLINE_CHARS ? <PlainText text={text} /> : <FormattedText text={text} />;
}

function FormattedText({ text }: { text: string }) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<MarkdownView | null>(null);
  useLayoutEffect(() => {
    view.current ??= createMarkdownView(host.current!);
    view.current.update(text);
  }, [text]);
  return <div class="markdown" dir="auto" ref={host} />;
}
