/** A character of JSON text takes at most three bytes in a record, whose body may have 4 MiB. */
const PART_CHARS = 2 ** 20;
const LOW_SURROGATE = /^[\uDC00-\uDFFF]/;

/** Parts that fit into a record each; no character is divided, because a record stores no half of one. */
export function divideText(text: string): readonly string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length || parts.length === 0;) {
    const isHalf = LOW_SURROGATE.test(text.slice(from + PART_CHARS, from + PART_CHARS + 1));
    const to = from + PART_CHARS - Number(isHalf);
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}
