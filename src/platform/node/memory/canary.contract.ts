// The search for what must not be seen: over every byte of every file, and over the names of files.
import { expect } from 'vitest';
import { contentsOf } from './memory-setup.contract.ts';

/** A text as it would lie in a file if it were not sealed: plain, wide, in hex, in Base64. */
const formsOf = (planted: string | Uint8Array): Buffer[] => {
  const bytes = Buffer.from(planted as string);
  if (typeof planted !== 'string') return [bytes];
  // The first letters in Base64 are the same whatever follows, where they come first.
  return [bytes, Buffer.from(planted, 'utf16le'), Buffer.from(bytes.toString('hex')), Buffer.from(bytes.toString('base64').slice(0, 12))]; // prettier-ignore
};

/** Fails where any of `planted` is in a file or in a name; the number of bytes that were searched. */
export function expectNothingPlain(folder: string, planted: readonly (string | Uint8Array)[]): number {
  // Shorter ones are found by chance in so many random bytes.
  const needles = planted.flatMap(formsOf).filter((needle) => needle.length >= 6);
  let sizeBytes = 0;
  for (const [name, bytes] of contentsOf(folder)) {
    for (const needle of needles) {
      const text = needle.toString('latin1');
      if (bytes.includes(needle) || name.includes(text)) expect([name, text]).toBe('nothing that was planted');
    }
    sizeBytes += bytes.length;
  }
  return sizeBytes;
}
