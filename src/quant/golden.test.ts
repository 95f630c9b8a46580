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
  format.quantize!(values, 0, out, 0, values.length / format.blockSize, null);
  expect(toHex(out)).toBe(block);
});

/**
 * Hashes of what ggml decodes from 1024 blocks of random bytes, which use every point of the grids. Bit 6 of byte
 * `finiteAt` is cleared, so that the scale is finite; -1: every byte is a finite scale.
 */
const DECODED: Partial<Record<TensorTypeName, { finiteAt: number; hash: string }>> = {
  IQ1_S: { finiteAt: 1, hash: '389ef0c5' },
  IQ1_M: { finiteAt: 55, hash: '8361e945' },
  IQ2_XXS: { finiteAt: 1, hash: '76ba8115' },
  IQ2_XS: { finiteAt: 1, hash: '9bb1a81d' },
  IQ2_S: { finiteAt: 1, hash: '3a23c8ad' },
  IQ3_XXS: { finiteAt: 1, hash: '88d32c4d' },
  IQ3_S: { finiteAt: 1, hash: '3b1d36d5' },
  MXFP4: { finiteAt: -1, hash: 'f169dc5' },
  NVFP4: { finiteAt: -1, hash: '17d49dc5' },
  TQ1_0: { finiteAt: 53, hash: 'ebcd5dc5' },
  TQ2_0: { finiteAt: 65, hash: '7c539dc5' },
  Q8_K: { finiteAt: 3, hash: 'a8e5cd7d' },
  Q1_0: { finiteAt: 1, hash: 'ed519dc5' },
  Q2_0: { finiteAt: 1, hash: '448d9dc5' },
};

test.each(Object.entries(DECODED))('%s decodes random blocks to the same bits as in ggml', (name, expected) => {
  const { blockSize, blockBytes, dequantize } = quantFormats[name as TensorTypeName];
  const block = new Uint8Array(blockBytes);
  const out = new Float32Array(blockSize);
  const words = new Uint32Array(out.buffer);
  let state = 1;
  let hash = 0x811c9dc5; // FNV-1a
  for (let i = 0; i < 1024; i++) {
    for (let at = 0; at < blockBytes; at++) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      block[at] = (state >>> 24) & (at === expected.finiteAt ? 0xbf : 0xff);
    }
    dequantize(block, 0, out, 0, 1);
    for (const word of words) hash = Math.imul(hash ^ word, 0x01000193);
  }
  expect((hash >>> 0).toString(16)).toBe(expected.hash);
});
