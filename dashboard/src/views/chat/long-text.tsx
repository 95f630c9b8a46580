import { useSignal } from '@preact/signals';
import { Button } from '../../components/button.tsx';
import { formatBytes } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

/** Longer texts are shown in part first. */
export const MAX_SHOWN_CHARS = 40_000;
const FIRST_CHARS = 4000;
/** A block that cannot be seen is not laid out; one of a megabyte would be, as soon as a line of it can. */
const BLOCK_CHARS = 4000;

/** Text as it was written, line breaks and all; a very long one opens in a frame of its own. */
export function PlainText({ text }: { text: string }) {
  const isWhole = useSignal(false);
  if (text.length <= MAX_SHOWN_CHARS) {
    return (
      <div class="plain" dir="auto">
        {visibleText(text)}
      </div>
    );
  }
  if (!isWhole.value) {
    return (
      <>
        <div class="plain" dir="auto">
          {visibleText(text.slice(0, FIRST_CHARS))}…
        </div>
        <Button isSmall onClick={() => (isWhole.value = true)}>
          Show all {formatBytes(new Blob([text]).size)}
        </Button>
      </>
    );
  }
  return (
    <>
      <div class="plain whole" dir="auto" tabIndex={0} role="region" aria-label="The whole message">
        {cut(text).map((block, index) => (
          <div key={index}>{visibleText(block)}</div>
        ))}
      </div>
      <Button isSmall onClick={() => (isWhole.value = false)}>
        Show less
      </Button>
    </>
  );
}

/** Into blocks that end with a line where there is one near. */
export function cut(text: string): string[] {
  const blocks: string[] = [];
  for (let from = 0; from < text.length;) {
    const limit = Math.min(text.length, from + BLOCK_CHARS);
    const lineEnd = limit === text.length ? limit : text.lastIndexOf('\n', limit) + 1;
    let to = lineEnd > from ? lineEnd : limit;
    // Half of a surrogate pair is no character.
    if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1]!)) to -= 1;
    blocks.push(text.slice(from, to));
    from = to;
  }
  return blocks;
}
