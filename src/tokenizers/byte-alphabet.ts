/**
 * The printable character for each byte in byte-level vocabularies: printable Latin-1 maps to itself, the other bytes,
 * in order, to U+0100 and up.
 */
export const BYTE_CHARACTERS: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(isPrintable ? byte : next++);
  });
})();

const BYTES = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
const encoder = new TextEncoder();

/** Bytes of a byte-level spelling; characters outside the alphabet give their UTF-8. */
export function bytesOfSpelling(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const character of text) {
    const byte = BYTES.get(character);
    if (byte === undefined) bytes.push(...encoder.encode(character));
    else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
