import { expect, test } from 'vitest';
import type { TensorTypeName } from '../core/tensor-type.ts';
import golden from './golden.json' with { type: 'json' };
import { quantFormats } from './index.ts';

// golden.json: made with ggml's reference functions. Hex of little-endian bytes; two blocks per format, the first of
// random bytes, the second a quantized one (IQ2_XXS: random bytes with the smallest scale).

const fromHex = (hex: string): Uint8Array => Uint8Array.from(hex.match(/../g)!, (byte) => parseInt(byte, 16));
const toHex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const floatsFromHex = (hex: string): Float32Array => new Float32Array(fromHex(hex).buffer as ArrayBuffer);

const dequantized = Object.entries(golden.dequantize).flatMap(([name, blocks]) =>
  blocks.map((entry, index) => ({ name: name as TensorTypeName, index, ...entry })),
);

test('every format with blocks has golden blocks', () => {
  const blocked = Object.values(quantFormats).filter((format) => format.blockSize > 1);
  expect(Object.keys(golden.dequantize).sort()).toEqual(blocked.map((format) => format.name).sort());
});

test.each(dequantized)('$name block $index decodes to the same bits as in ggml', ({ name, block, floats }) => {
  const out = new Float32Array(quantFormats[name].blockSize);
  quantFormats[name].dequantize(fromHex(block), 0, out, 0, 1);
  expect(toHex(new Uint8Array(out.buffer))).toBe(floats);
});

const quantized = Object.entries(golden.quantize).map(([name, entry]) => ({ name: name as TensorTypeName, ...entry }));

test.each(quantized)('$name encodes to the same bytes as in ggml', ({ name, floats, block }) => {
  const format = quantFormats[name];
  const values = floatsFromHex(floats);
  const out = new Uint8Array(block.length / 2);
  format.quantize!(values, 0, out, 0, values.length / format.blockSize);
  expect(toHex(out)).toBe(block);
});

test('all 256 points of the IQ2_XXS grid equal those of ggml', () => {
  const block = new Uint8Array(66);
  block[1] = 0x48; // half 8: with scale 0, the values equal the grid's
  const out = new Float32Array(256);
  let hash = 0x811c9dc5; // FNV-1a over the 2048 magnitudes, compared with the one over ggml's output
  for (let point = 0; point < 256; point++) {
    block[2] = point;
    quantFormats.IQ2_XXS.dequantize(block, 0, out, 0, 1);
    for (const magnitude of out.subarray(0, 8)) hash = Math.imul(hash ^ magnitude, 0x01000193);
  }
  expect((hash >>> 0).toString(16)).toBe('3db4a16e');
});
