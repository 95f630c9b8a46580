// ignoreBOM: U+FEFF is a token of real vocabularies and must be preserved.
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Below this length decoding by hand is faster than a TextDecoder call; vocabularies have 10^5 strings of about 7 bytes. */
const SHORT_BYTES = 48;
const units = new Uint16Array(SHORT_BYTES);
/** One reused list per length: `fromCharCode.apply` is three times slower on a view of a typed array. */
const lists = Array.from({ length: SHORT_BYTES + 1 }, (_, length) => Array.from<number>({ length }).fill(0));

/** UTF-8 to string, or null if the bytes are not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string | null {
  if (end - start <= SHORT_BYTES) {
    const text = decodeShort(bytes, start, end);
    if (text !== null) return text;
  }
  try {
    return strictDecoder.decode(bytes.subarray(start, end));
  } catch {
    return null;
  }
}

/** Handles valid sequences of one to three bytes and leaves others to the strict decoder. */
function decodeShort(bytes: Uint8Array, start: number, end: number): string | null {
  let length = 0;
  let at = start;
  while (at < end) {
    const first = bytes[at++]!;
    if (first < 0x80) {
      units[length++] = first;
    } else if (first >= 0xc2 && first < 0xe0 && at < end && (bytes[at]! & 0xc0) === 0x80) {
      units[length++] = ((first & 0x1f) << 6) | (bytes[at++]! & 0x3f);
    } else if (first >= 0xe0 && first < 0xf0 && at + 1 < end) {
      const second = bytes[at++]!;
      const third = bytes[at++]!;
      const unit = ((first & 0x0f) << 12) | ((second & 0x3f) << 6) | (third & 0x3f);
      if ((second & 0xc0) !== 0x80 || (third & 0xc0) !== 0x80) return null;
      if (unit < 0x800 || (unit >= 0xd800 && unit < 0xe000)) return null;
      units[length++] = unit;
    } else {
      return null;
    }
  }
  const list = lists[length]!;
  for (let i = 0; i < length; i++) list[i] = units[i]!;
  return String.fromCharCode.apply(null, list);
}

/** String to UTF-8, or null for lone surrogates: the encoder would silently write U+FFFD. */
export function encodeUtf8(text: string): Uint8Array | null {
  return /[\ud800-\udfff]/.test(text) && hasLoneSurrogate(text) ? null : encoder.encode(text);
}

function hasLoneSurrogate(text: string): boolean {
  return /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}
