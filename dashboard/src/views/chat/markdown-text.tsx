import { useLayoutEffect, useRef } from 'preact/hooks';
import { MAX_SHOWN_CHARS, PlainText } from './long-text.tsx';
import { createMarkdownView, type MarkdownView } from './markdown.ts';

/** An answer with its formatting; one too long to be laid out again with every word is plain. */
export function MarkdownText({ text }: { text: string }) {
  return text.length > MAX_SHOWN_CHARS ? <PlainText text={text} /> : <Formatted text={text} />;
}

function Formatted({ text }: { text: string }) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<MarkdownView | null>(null);
  useLayoutEffect(() => {
    view.current ??= createMarkdownView(host.current!);
    view.current.update(text);
  }, [text]);
  return <div class="markdown" dir="auto" ref={host} />;
}
