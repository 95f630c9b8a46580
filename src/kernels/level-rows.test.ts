import { expect, test } from 'vitest';
import { writeScale } from '../../test/support/random-blocks.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats, rowBytes } from '../quant/index.ts';
import { decodeRows, levelRowBytes } from './level-rows.ts';

const NUM_COLS = 512;
const types = (Object.keys(quantFormats) as TensorTypeName[]).filter(
  (type) => quantFormats[type].decodeLevels !== undefined,
);

function decode(type: TensorTypeName, bytes: Uint8Array): Uint8Array {
  const staged = new Uint8Array(levelRowBytes(NUM_COLS));
  const readInto = (target: Uint8Array, at: number): void => target.set(bytes.subarray(at, at + target.length));
  decodeRows({ name: 'w', type, numRows: 3, numCols: NUM_COLS, readInto }, 1, 1, staged);
  return staged;
}

test.each(types)('%s is staged as levels and scales whose products are its values', (type) => {
  const size = rowBytes(type, NUM_COLS);
  const bytes = Uint8Array.from({ length: 3 * size }, (_, i) => (Math.imul(i + 1, 0x9e3779b1) >>> 21) & 255);
  const { blockSize, blockBytes, dequantize } = quantFormats[type];
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += blockBytes) writeScale(type, view, at, 0.25);
  const staged = decode(type, bytes);
  const levels = new Int8Array(staged.buffer, 0, NUM_COLS);
  const scales = new Float32Array(staged.buffer, NUM_COLS);
  const expected = new Float32Array(NUM_COLS);
  dequantize(bytes, size, expected, 0, NUM_COLS / blockSize);
  expect(expected.some((value) => value !== 0)).toBe(true);
  expect(Float32Array.from(levels, (level, i) => scales[i >> 4]! * level)).toEqual(expected);
});

test.each(types.filter((type) => type !== 'NVFP4'))('%s with an infinite scale is refused with its row', (type) => {
  const bytes = new Uint8Array(3 * rowBytes(type, NUM_COLS));
  const size = bytes.length / 3;
  writeScale(type, new DataView(bytes.buffer), 2 * size - quantFormats[type].blockBytes, Infinity);
  expect(() => decode(type, bytes)).toThrow(
    expect.objectContaining({
      code: 'invalid_model_file',
      data: { name: 'w', type, firstRow: 1, numRows: 1 },
    }) as Error,
  );
});
