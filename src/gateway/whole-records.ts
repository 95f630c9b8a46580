/** Bytes of a record that is held back until it is complete; a longer one is passed on in parts. */
const MAX_HELD_BYTES = 2 ** 20;

const LINE_FEED = 10;

/**
 * Passes on whole records of a stream, which end with `numFeeds` line feeds. If the stream breaks, its last, partial record is dropped
 * and `lastWords` follows: an error after half an event would be part of that event, which no client could parse.
 */
export async function* wholeRecords(
  chunks: AsyncIterable<Uint8Array>,
  numFeeds: 1 | 2,
  lastWords: (error: unknown) => Uint8Array | null,
): AsyncGenerator<Uint8Array, void, undefined> {
  let held: Uint8Array | null = null;
  try {
    for await (const chunk of chunks) {
      const bytes: Uint8Array = held === null ? chunk : concat(held, chunk);
      const end = bytes.length > MAX_HELD_BYTES ? bytes.length : endOfRecords(bytes, numFeeds);
      if (end > 0) yield bytes.subarray(0, end);
      held = end === bytes.length ? null : bytes.subarray(end);
    }
    if (held !== null) yield held;
  } catch (error) {
    const words = lastWords(error);
    if (words !== null) yield words;
  }
}

function endOfRecords(bytes: Uint8Array, numFeeds: 1 | 2): number {
  for (let at = bytes.lastIndexOf(LINE_FEED); at >= 0; at = at === 0 ? -1 : bytes.lastIndexOf(LINE_FEED, at - 1)) {
    if (numFeeds === 1 || (at > 0 && bytes[at - 1] === LINE_FEED)) return at + 1;
  }
  return 0;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(a.length + b.length);
  bytes.set(a);
  bytes.set(b, a.length);
  return bytes;
}
