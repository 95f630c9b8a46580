import { expect, test } from 'vitest';
import { createMemorySource } from '../../core/byte-source.ts';
import { createMemorySink, writeGguf } from '../index.ts';
import { describeImatrix, readImatrix } from './imatrix.ts';

function legacyBytes(entries: readonly [name: string, numChunks: number, values: readonly number[]][]): Uint8Array {
  const parts: Uint8Array[] = [];
  const word = (value: number): void => void parts.push(new Uint8Array(Int32Array.of(value).buffer));
  word(entries.length);
  for (const [name, numChunks, values] of entries) {
    const bytes = new TextEncoder().encode(name);
    word(bytes.length);
    parts.push(bytes);
    word(numChunks);
    word(values.length);
    parts.push(new Uint8Array(Float32Array.from(values).buffer));
  }
  word(7);
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

test('reads back the means of what it wrote, expert by expert', () => {
  const sums = new Map([
    ['b.weight', { sums: Float64Array.of(2, 4, 9, 12), counts: Float64Array.of(2, 3) }],
    ['a.weight', { sums: Float64Array.of(8, 0, 5, 5), counts: Float64Array.of(4, 0) }],
  ]);
  const sink = createMemorySink();
  writeGguf(describeImatrix(sums, { dataset: 'text.txt', numChunks: 1, chunkTokens: 512 }), sink);
  const matrix = readImatrix(createMemorySource(sink.toBytes()));
  expect([...matrix.get('b.weight')!]).toEqual([1, 2, 3, 4]);
  // The second expert was never chosen: its columns are equal.
  expect([...matrix.get('a.weight')!]).toEqual([2, 0, 1, 1]);
});

test('reads the format before GGUF', () => {
  const matrix = readImatrix(createMemorySource(legacyBytes([['x.weight', 2, [2, 6]], ['y.weight', 1, [5]]]))); // prettier-ignore
  expect([...matrix.get('x.weight')!]).toEqual([1, 3]);
  expect([...matrix.get('y.weight')!]).toEqual([5]);
});

test.each([
  ['nothing', new Uint8Array(0), /the number of entries needs 4 bytes/],
  ['a name longer than the file', Uint8Array.of(1, 0, 0, 0, 200, 0, 0, 0, 65), /name 0 needs 200 bytes at byte 8/],
  [
    'a count of values that lies',
    legacyBytes([['x', 1, [1]]]).fill(255, 13, 17),
    /number of values of "x" is 4294967295/,
  ],
  ['two entries of a tensor', legacyBytes([['x', 1, [1]], ['x', 1, [1]]]), /"x" has two entries/], // prettier-ignore
  ['a negative value', legacyBytes([['x', 1, [-1]]]), /value -1 at index 0 of "x"/],
  ['a value that is not a number', legacyBytes([['x', 1, [NaN]]]), /value NaN at index 0 of "x"/],
])('refuses %s', (_, bytes, message) => {
  expect(() => readImatrix(createMemorySource(bytes))).toThrow(message);
});
