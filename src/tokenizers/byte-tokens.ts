import type { Vocabulary } from './vocabulary.ts';

const encoder = new TextEncoder();

/** SentencePiece's mark for a space. */
export const SPACE_MARK = '▁';

function hexSpelling(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}

/** Ids of single-byte tokens (`<0x0A>`, or the bare ASCII character); -1 where the vocabulary has none. */
export function readByteTokens(vocabulary: Vocabulary): Int32Array {
  const ids = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    const bare = byte < 128 ? vocabulary.ids.get(String.fromCharCode(byte)) : undefined;
    ids[byte] = vocabulary.ids.get(hexSpelling(byte)) ?? bare ?? -1;
  }
  return ids;
}

/** The byte of a `<0x0A>` spelling, or -1 for other spellings. */
export function byteOfSpelling(text: string): number {
  const match = /^<0x([0-9A-Fa-f]{2})>$/.exec(text);
  return match === null ? -1 : Number.parseInt(match[1]!, 16);
}

/** Appends a character as byte tokens, else as one unknown token, else not at all. */
export function appendAsBytes(
  character: string,
  byteTokens: Int32Array,
  unknownId: number | null,
  ids: number[],
): void {
  const bytes = encoder.encode(character);
  if (bytes.every((byte) => byteTokens[byte]! >= 0)) for (const byte of bytes) ids.push(byteTokens[byte]!);
  else if (unknownId !== null) ids.push(unknownId);
}

/** Bytes of a token spelled with space marks. */
export function unmarkedBytes(text: string): Uint8Array {
  return encoder.encode(text.replaceAll(SPACE_MARK, ' '));
}
