import type { TextSearch } from './text-search.ts';

const decoder = new TextDecoder();

/** Whether every occurrence in JSON is inside one string and ends with a character that can be escaped. */
export function isEscapable(without: TextSearch): boolean {
  const text = decoder.decode(without.bytes);
  return !/["\\]/.test(text) && /[^\s\w{}[\],:.+-]/.test(text) && /[!-~]$/.test(text);
}

/** Whether the schema has strings that could force the end of `without`. */
export function mayForce(schema: unknown, without: TextSearch): boolean {
  const last = decoder.decode(without.bytes).at(-1)!;
  const pending: unknown[] = [schema];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === 'string' && (value.includes(last) || value.includes('\\'))) return true;
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, item] of Object.entries(value)) pending.push(key, item);
  }
  return false;
}

/**
 * Equivalent JSON without the text: the last character of each occurrence becomes an escape. Occurrences are always
 * inside strings, because forbidden texts contain characters that JSON has nowhere else.
 */
export function escapeWithout(json: Uint8Array, without: TextSearch, place: number): Uint8Array {
  const out: number[] = [];
  let at = place;
  for (const byte of json) {
    at = without.next(at, byte);
    if (at < without.bytes.length) {
      out.push(byte);
      continue;
    }
    const escape = `\\u${byte.toString(16).padStart(4, '0')}`;
    at = place;
    for (let i = 0; i < escape.length; i++) {
      out.push(escape.charCodeAt(i));
      at = without.next(at, escape.charCodeAt(i));
    }
  }
  return Uint8Array.from(out);
}

/** Whether an occurrence of `text` could end inside an occurrence of `next`. */
export function overlaps(text: Uint8Array, next: Uint8Array): boolean {
  for (let length = 1; length < next.length; length++) {
    const end = text.subarray(Math.max(0, text.length - length));
    const begin = next.subarray(Math.max(0, length - text.length), length);
    if (end.every((byte, i) => byte === begin[i])) return true;
  }
  return false;
}
