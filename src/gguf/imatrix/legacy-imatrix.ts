import type { ByteSource } from '../../core/byte-source.ts';
import { invalidFile, quote } from '../failures.ts';
import { createHeaderCursor } from '../header-cursor.ts';
import { decodeUtf8 } from '../utf8.ts';
import type { ImportanceMatrix } from './importance-matrix.ts';

/** More than any model has. */
const MAX_ENTRIES = 1 << 20;
const MAX_NAME_BYTES = 256;

/**
 * llama.cpp's format before GGUF, all words of 32 bits: the number of entries, then for each the length of its name, the name, the number
 * of chunks, the number of values, and their sums over the chunks. The rest of the file is not needed.
 */
export function readLegacyImatrix(source: ByteSource): ImportanceMatrix {
  const cursor = createHeaderCursor(source, source.sizeBytes);
  const limited = (max: number, what: string): number => {
    const value = cursor.u32(what);
    if (value >= 1 && value <= max) return value;
    return invalidFile(`${source.name} is not an importance matrix: ${what} is ${value}, expected 1 to ${max}`);
  };
  const numEntries = limited(MAX_ENTRIES, 'the number of entries');
  const matrix = new Map<string, Float32Array>();
  for (let entry = 0; entry < numEntries; entry++) {
    const nameBytes = cursor.bytes(limited(MAX_NAME_BYTES, `the length of name ${entry}`), `name ${entry}`);
    const name =
      decodeUtf8(nameBytes, 0, nameBytes.length) ?? invalidFile(`${source.name}: name ${entry} is not UTF-8`);
    const numChunks = cursor.u32(`the chunks of ${quote(name)}`);
    const numValues = limited(Math.floor(source.sizeBytes / 4), `the number of values of ${quote(name)}`);
    const sums = new Float32Array(cursor.bytes(numValues * 4, `the values of ${quote(name)}`).buffer);
    if (matrix.has(name)) invalidFile(`${source.name}: ${quote(name)} has two entries`);
    matrix.set(name, numChunks > 1 ? sums.map((sum) => sum / numChunks) : sums);
  }
  return matrix;
}
