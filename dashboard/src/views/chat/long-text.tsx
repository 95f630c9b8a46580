import { useSignal } from '@preact/signals';
import { Button } from '../../components/button.tsx';
import { formatBytes } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const words = messages.chat.message;

/** Longer texts start truncated. */
const MAX_INLINE_CHARS = 40_000;
const INITIAL_CHARS = 4000;
/** Off-screen blocks are not laid out; a single block of a megabyte would be as soon as one line is visible. */
const BLOCK_CHARS = 4000;

/** Shows text verbatim with its line breaks; a very long text expands into a scrolling frame. */
export function PlainText({ text }: { text: string }) {
  const isExpanded = useSignal(false);
  if (text.length <= MAX_INLINE_CHARS) {
    return (
      <div class="words" dir="auto">
        {visibleText(text)}
      </div>
    );
  }
  if (!isExpanded.value) {
    return (
      <>
        <div class="words" dir="auto">
          {visibleText(text.slice(0, INITIAL_CHARS))}…
        </div>
        <Button isSmall onClick={() => (isExpanded.value = true)}>
          {words.showAll(formatBytes(new Blob([text]).size))}
        </Button>
      </>
    );
  }
  return (
    <>
      <div class="words whole" dir="auto" tabIndex={0} role="region" aria-label={words.full}>
        {splitBlocks(text).map((block, index) => (
          <div key={index}>{visibleText(block)}</div>
        ))}
      </div>
      <Button isSmall onClick={() => (isExpanded.value = false)}>
        {words.showLess}
      </Button>
    </>
  );
}

/** Splits text into blocks, at line ends where possible. */
export function splitBlocks(text: string): string[] {
  const blocks: string[] = [];
  for (let from = 0; from < text.length;) {
    const limit = Math.min(text.length, from + BLOCK_CHARS);
    const lineEnd = limit === text.length ? limit : text.lastIndexOf('\n', limit) + 1;
    let to = lineEnd > from ? lineEnd : limit;
    // Keeps surrogate pairs together.
    if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1]!)) to -= 1;
    blocks.push(text.slice(from, to));
    from = to;
  }
  return blocks;
}
