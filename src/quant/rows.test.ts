import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { dequantizeRow, formatByGgufId, quantFormats, quantizeRow, rowBytes } from './index.ts';

const names = Object.keys(quantFormats) as TensorTypeName[];

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof RuvLLMError) return error.code;
    throw error;
  }
  return 'no error';
}

test('type numbers, block sizes and block bytes match the file format', () => {
  const facts = Object.values(quantFormats).map((format) => [
    format.name,
    format.ggufId,
    format.blockSize,
    format.blockBytes,
  ]);
  expect(facts).toEqual([
    ['F32', 0, 1, 4],
    ['F16', 1, 1, 2],
    ['BF16', 30, 1, 2],
    ['Q4_0', 2, 32, 18],
    ['Q4_1', 3, 32, 20],
    ['Q5_0', 6, 32, 22],
    ['Q5_1', 7, 32, 24],
    ['Q8_0', 8, 32, 34],
    ['Q2_K', 10, 256, 84],
    ['Q3_K', 11, 256, 110],
    ['Q4_K', 12, 256, 144],
    ['Q5_K', 13, 256, 176],
    ['Q6_K', 14, 256, 210],
    ['Q8_K', 15, 256, 292],
    ['IQ1_S', 19, 256, 50],
    ['IQ1_M', 29, 256, 56],
    ['IQ2_XXS', 16, 256, 66],
    ['IQ2_XS', 17, 256, 74],
    ['IQ2_S', 22, 256, 82],
    ['IQ3_XXS', 18, 256, 98],
    ['IQ3_S', 21, 256, 110],
    ['IQ4_NL', 20, 32, 18],
    ['IQ4_XS', 23, 256, 136],
    ['TQ1_0', 34, 256, 54],
    ['TQ2_0', 35, 256, 66],
    ['Q1_0', 41, 128, 18],
    ['Q2_0', 42, 64, 18],
    ['MXFP4', 39, 32, 17],
    ['NVFP4', 40, 64, 36],
  ]);
});

test('looks formats up by number and returns null for unknown numbers', () => {
  for (const name of names) expect(formatByGgufId(quantFormats[name].ggufId)).toBe(quantFormats[name]);
  for (const id of [-1, 4, 9, 24, 31, 43, 1e9, NaN, 0.5]) expect(formatByGgufId(id)).toBeNull();
});

test('every format is registered under its name', () => {
  for (const name of names) expect(quantFormats[name].name).toBe(name);
});

test('rowBytes counts whole blocks', () => {
  expect(rowBytes('F32', 7)).toBe(28);
  expect(rowBytes('Q4_0', 4096)).toBe(2304);
  expect(rowBytes('Q6_K', 2048)).toBe(1680);
  expect(rowBytes('IQ2_XXS', 0)).toBe(0);
});

test.each([-256, 1, 100, 128, 255.5, NaN, Infinity, 2 ** 60])('rowBytes rejects a Q4_K row of %s values', (numCols) => {
  expect(() => rowBytes('Q4_K', numCols)).toThrow(
    `a row of ${numCols} values is not a multiple of the Q4_K block size 256`,
  );
  expect(codeOf(() => rowBytes('Q4_K', numCols))).toBe('invalid_model_file');
});

test('dequantizeRow reads at its offsets and rejects ranges past either array', () => {
  const bytes = Uint8Array.of(9, 9, 0, 0x3c, 0, 0xc0); // halves 1 and -2 from byte 2 on
  const out = new Float32Array(4);
  dequantizeRow('F16', bytes, out, 2, { byteOffset: 2, valueOffset: 1 });
  expect([...out]).toEqual([0, 1, -2, 0]);
  expect(codeOf(() => dequantizeRow('F16', bytes, out, 2, { byteOffset: 3 }))).toBe('invalid_option');
  expect(codeOf(() => dequantizeRow('F16', bytes, out, 2, { valueOffset: 3 }))).toBe('invalid_option');
  expect(codeOf(() => dequantizeRow('F16', bytes, out, 2, { byteOffset: -2 }))).toBe('invalid_option');
});

test.each(names)('%s: quantizeRow rejects values that would decode to NaN or infinity', (name) => {
  const { blockSize } = quantFormats[name];
  for (const value of [NaN, Infinity, -Infinity]) {
    const values = new Float32Array(blockSize).fill(value, blockSize - 1);
    expect(() => quantizeRow(name, values)).toThrow(`value ${value} at index ${blockSize - 1} cannot be stored`);
  }
});

test('quantizeRow rejects finite values that overflow the scale', () => {
  const wide = ['F32', 'BF16', 'Q8_K', 'MXFP4'];
  for (const name of names.filter((name) => !wide.includes(name))) {
    const values = new Float32Array(quantFormats[name].blockSize).fill(1e30);
    expect(codeOf(() => quantizeRow(name, values))).toBe('invalid_option');
  }
  expect(quantizeRow('F32', Float32Array.of(1))).toEqual(Uint8Array.of(0, 0, 0x80, 0x3f));
});

test.each(names)('%s: blocks do not depend on their position, and neighbours stay unchanged', (name) => {
  const format = quantFormats[name];
  const values = fc.array(fc.float({ min: -4, max: 4, noNaN: true }), {
    minLength: 3 * format.blockSize,
    maxLength: 3 * format.blockSize,
  });
  fc.assert(
    fc.property(values, (list) => {
      const row = Float32Array.from(list);
      const bytes = quantizeRow(name, row);
      const alone = quantizeRow(name, row.slice(format.blockSize, 2 * format.blockSize));
      expect(bytes.slice(format.blockBytes, 2 * format.blockBytes)).toEqual(alone);

      // Old bytes of the target must not remain, and bytes outside the block must not change.
      const target = new Uint8Array(format.blockBytes + 3).fill(0xa5);
      format.quantize!(row, format.blockSize, target, 1, 1, null);
      expect(target).toEqual(Uint8Array.of(0xa5, ...alone, 0xa5, 0xa5));

      const decodedRow = new Float32Array(3 * format.blockSize);
      dequantizeRow(name, bytes, decodedRow, decodedRow.length);
      const one = new Float32Array(format.blockSize + 3).fill(7);
      format.dequantize(target, 1, one, 2, 1);
      expect(one).toEqual(Float32Array.of(7, 7, ...decodedRow.slice(format.blockSize, 2 * format.blockSize), 7));
    }),
    { numRuns: 10 },
  );
});
