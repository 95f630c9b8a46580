import { expect, test } from 'vitest';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats } from './index.ts';

/** Halves, low byte first. */
const ONE = [0x00, 0x3c];
const TWO = [0x00, 0x40];
const HALF = [0x00, 0x38];
const MINUS_ONE = [0x00, 0xbc];
const EIGHT = [0x00, 0x48];

interface KnownBlock {
  name: TensorTypeName;
  /** Bytes of one block by offset; all others are zero. */
  bytes: Record<number, number[]>;
  /** Values by index, derived from the format's definition. */
  values: Record<number, number>;
  /** All other values. */
  others: number;
}

/** `count` equal values from index `from` on. */
function run(from: number, count: number, value: number): Record<number, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [from + i, value]));
}

const knownBlocks: KnownBlock[] = [
  { name: 'F32', bytes: { 0: [0x00, 0x00, 0x20, 0xc0] }, values: { 0: -2.5 }, others: 0 },
  { name: 'F16', bytes: { 0: [0x01, 0x80] }, values: { 0: -(2 ** -24) }, others: 0 },
  { name: 'BF16', bytes: { 0: [0x20, 0xc0] }, values: { 0: -2.5 }, others: 0 },
  // Byte 0 → values 0 and 16, byte 15 → values 15 and 31; nibble - 8.
  {
    name: 'Q4_0',
    bytes: { 0: TWO, 2: [0xf1], 17: [0x8a] },
    values: { 0: 2 * (1 - 8), 16: 2 * (15 - 8), 15: 2 * (10 - 8), 31: 0 },
    others: -16,
  },
  {
    name: 'Q4_1',
    bytes: { 0: HALF, 2: MINUS_ONE, 4: [0xf1], 19: [0x8a] },
    values: { 0: 0.5 - 1, 16: 7.5 - 1, 15: 5 - 1, 31: 4 - 1 },
    others: -1,
  },
  // Fifth bits: bit 0 → value 0, bit 17 → value 17, bit 31 → value 31.
  {
    name: 'Q5_0',
    bytes: { 0: ONE, 2: [0x01, 0x00, 0x02, 0x80], 6: [0xf1], 21: [0x30] },
    values: { 0: 17 - 16, 16: 15 - 16, 17: 16 - 16, 31: 19 - 16 },
    others: -16,
  },
  {
    name: 'Q5_1',
    bytes: { 0: ONE, 2: TWO, 4: [0x01, 0x00, 0x02, 0x80], 8: [0xf1], 23: [0x30] },
    values: { 0: 17 + 2, 16: 15 + 2, 17: 16 + 2, 31: 19 + 2 },
    others: 2,
  },
  {
    name: 'Q8_0',
    bytes: { 0: HALF, 2: [0x7f, 0x80], 33: [0xff] },
    values: { 0: 63.5, 1: -64, 31: -0.5 },
    others: 0,
  },
  // Scale byte 0 (scale 3, min 2) → values 0–15; scale byte 9 (scale 5) → values 144–159, low two bits of the upper
  // half's bytes 16–31; scale byte 6 (scale 1) → values 96–111, top two bits.
  {
    name: 'Q2_K',
    bytes: { 0: [0x23], 6: [0x01], 9: [0x05], 16: [0b11_00_00_10], 64: [0b01], 80: ONE, 82: HALF },
    values: {
      ...run(0, 16, -1),
      0: 3 * 2 - 0.5 * 2,
      96: 3,
      144: 5 * 1,
    },
    others: 0,
  },
  // All levels 0 with third bit clear: -4. Scale 0 stored as 33 → 1; scale 13 stored as 16 → -16; the others 0 → -32.
  {
    name: 'Q3_K',
    bytes: {
      0: [0x01], // third bit of value 0
      31: [0x40], // third bit of value 6 * 32 + 31 = 223
      32: [0x03], // value 0: lower bits 3
      95: [0x20], // value 128 + 2 * 32 + 31 = 223: lower bits 2
      96: [0x01], // scale 0: lower four bits 1 (scale 8: 0)
      104: [0x02, 0x40], // scale 0: upper bits 2; scale 13: upper bits 1
      108: ONE,
    },
    values: {
      ...run(0, 16, 1 * -4),
      ...run(208, 16, -16 * -4),
      0: 1 * (3 + 4 - 4),
      223: -16 * (2 + 4 - 4),
    },
    others: -32 * -4,
  },
  // Scale 1 = 2, min 1 = 3; scale 6 = 0b10_0101 = 37, min 6 = 0b01_1010 = 26.
  {
    name: 'Q4_K',
    bytes: {
      0: ONE,
      2: HALF,
      5: [2],
      6: [0b10 << 6],
      9: [3],
      10: [0b01 << 6],
      14: [0b1010_0101],
      16: [0x70],
      112: [0x09], // value 32: 7; value 192: 9
    },
    values: {
      ...run(32, 32, -0.5 * 3),
      ...run(192, 32, -0.5 * 26),
      32: 2 * 7 - 1.5,
      192: 37 * 9 - 13,
    },
    others: 0,
  },
  {
    name: 'Q5_K',
    bytes: {
      0: ONE,
      2: HALF,
      5: [2],
      6: [0b10 << 6],
      9: [3],
      10: [0b01 << 6],
      14: [0b1010_0101],
      16: [0b0100_0010], // fifth bits of values 32 and 192
      48: [0x70],
      144: [0x09],
    },
    values: {
      ...run(32, 32, -0.5 * 3),
      ...run(192, 32, -0.5 * 26),
      32: 2 * 23 - 1.5,
      192: 37 * 25 - 13,
    },
    others: 0,
  },
  // Scale 0 = -1, scale 5 = 2, scale 15 = 1; all others are 0.
  {
    name: 'Q6_K',
    bytes: {
      0: [0x05], // value 0: lower nibble 5
      48: [0x0b], // value 48, whose scale is 0
      16: [0x90], // value 80: lower nibble 9
      127: [0xe0], // value 255: lower nibble 14
      128: [0x01], // value 0: upper bits 1
      144: [0x20], // value 80: upper bits 2
      191: [0xc0], // value 255: upper bits 3
      192: [0xff],
      197: [2],
      207: [1],
      208: ONE,
    },
    values: {
      ...run(0, 16, 32),
      ...run(80, 16, 2 * -32),
      ...run(240, 16, -32),
      0: -(16 + 5 - 32),
      80: 2 * (32 + 9 - 32),
      255: 48 + 14 - 32,
    },
    others: 0,
  },
  // d = 8, scale 0: factor 1. Point 0 is eight 8s, point 1 (code 2) has 43 first, point 255 (code 43268) is
  // 10 10 10 01 00 00 01 00 from the last value to the first. Sign bits 0000001 get a minus on value 7 as well.
  {
    name: 'IQ2_XXS',
    bytes: { 0: EIGHT, 58: [1, 255, 0, 0, 0x01, 0x00, 0x00, 0x10] },
    values: {
      ...run(224, 32, 3 * 8),
      224: -3 * 43,
      231: -3 * 8,
      232: 3 * 8,
      233: 3 * 25,
      234: 3 * 8,
      235: 3 * 8,
      236: 3 * 25,
      237: 3 * 43,
      238: 3 * 43,
      239: 3 * 43,
    },
    others: 8,
  },
  // The last point of IQ2_XS and IQ2_S is eight 43s; point 1 has one 43 first.
  {
    name: 'IQ2_XS',
    bytes: { 0: EIGHT, 10: [0xff, 0x03], 12: [0x01, 0x00], 66: [0x00, 0x20] },
    values: { ...run(48, 16, 5 * 8), ...run(32, 8, 43), 32: -43, 39: -43, 40: 43 },
    others: 8,
  },
  {
    name: 'IQ2_S',
    bytes: { 0: EIGHT, 6: [0xff, 0x01], 38: [0x81], 67: [0x03], 74: [0x00, 0x20] },
    values: { ...run(48, 16, 5 * 8), ...run(32, 8, 43), 32: -43, 39: -43, 40: 43 },
    others: 8,
  },
  // Points of four values: 1 has 20 first, 255 is 4 28 52 62. Sub-block 7 has scale 1 and a minus on values 0 and 7.
  {
    name: 'IQ3_XXS',
    bytes: { 0: EIGHT, 58: [1, 255], 94: [0x01, 0x00, 0x00, 0x10] },
    values: { ...run(224, 32, 6 * 4), 224: -6 * 20, 229: 6 * 28, 230: 6 * 52, 231: -6 * 62 },
    others: 2 * 4,
  },
  // Points of four values: 1 has 3 first, 511 is 1 1 15 15.
  {
    name: 'IQ3_S',
    bytes: { 0: ONE, 10: [1, 255], 67: [0x02], 78: [0x81], 106: [0x10] },
    values: { ...run(32, 32, 3), 32: -9, 38: 45, 39: -45 },
    others: 1,
  },
  // Point 0 is eight -1s, 1 has 1 first, 2047 is eight 1s. Offsets are +1/8, or -1/8 in sub-block 1, with scale 1.
  {
    name: 'IQ1_S',
    bytes: { 0: EIGHT, 6: [1, 255], 36: [0x38, 0x90] },
    values: { ...run(32, 32, -27), 32: 21, ...run(40, 8, 21) },
    others: -7,
  },
  {
    name: 'IQ1_M',
    bytes: { 4: [1, 255], 34: [0x78], 48: [0x00, 0x02, 0x00, 0x00, 0x00, 0x80, 0x00, 0x40] },
    values: { 32: 7, ...run(33, 7, -9), ...run(40, 8, 9), ...run(48, 16, 3 * -7) },
    others: -7,
  },
  { name: 'Q8_K', bytes: { 0: [0, 0, 0x20, 0xc0], 4: [3], 259: [0x80] }, values: { 0: -7.5, 255: 320 }, others: 0 },
  // Byte 243 is 242.something / 243 of 256: digits 2 2 2 2 2, that is 1s; byte 0 is -1s.
  {
    name: 'TQ1_0',
    bytes: { 1: [255], 51: [255], 52: TWO },
    values: { 1: 2, 33: 2, 65: 2, 97: 2, 129: 2, 243: 2, 247: 2, 251: 2, 255: 2 },
    others: -2,
  },
  {
    name: 'TQ2_0',
    bytes: { 1: [0b11_10_01_00], 64: TWO },
    values: { 33: 0, 65: 2, 97: 4 },
    others: -2,
  },
  { name: 'Q1_0', bytes: { 0: HALF, 3: [0x81] }, values: { 8: 0.5, 15: 0.5 }, others: -0.5 },
  { name: 'Q2_0', bytes: { 0: HALF, 3: [0b11_10_01_00] }, values: { 5: 0, 6: 0.5, 7: 1 }, others: -0.5 },
  // Exponent 128 is 2. Codes 1 and 7 are 0.5 and 6, code 15 is -6.
  { name: 'MXFP4', bytes: { 0: [128, 0xf7], 16: [0x01] }, values: { 0: 12, 16: -12, 15: 1 }, others: 0 },
  // Scale byte 64 is 2, 57 is 1.125; sub-block 1 pairs value j with value j + 8.
  {
    name: 'NVFP4',
    bytes: { 0: [64, 57], 4: [0xf7], 13: [0x71] },
    values: { 0: 12, 8: -12, 17: 0.5625, 25: 6.75 },
    others: 0,
  },
  {
    name: 'IQ4_NL',
    bytes: { 0: HALF, 2: [0xf1], 17: [0x87] },
    values: { 0: 0.5 * -104, 16: 0.5 * 113, 15: 0.5 * -10, 31: 0.5 },
    others: 0.5 * -127,
  },
  // Scale 3 stored as 33 → 1, scale 4 stored as 63 → 31, the others 0 → -32.
  {
    name: 'IQ4_XS',
    bytes: { 0: ONE, 2: [0x80, 0x03], 5: [0x10], 6: [0x0f], 56: [0xf1], 87: [0x8c] },
    values: {
      ...run(96, 32, -127),
      ...run(128, 32, 31 * -127),
      96: -104,
      112: 113,
      143: 31 * 53,
      159: 31,
    },
    others: -32 * -127,
  },
];

test('every format has a known block', () => {
  expect(knownBlocks.map((block) => block.name).sort()).toEqual(Object.keys(quantFormats).sort());
});

test.each(knownBlocks)('$name decodes as its definition says', ({ name, bytes, values, others }) => {
  const format = quantFormats[name];
  const block = new Uint8Array(format.blockBytes);
  for (const [offset, part] of Object.entries(bytes)) block.set(part, Number(offset));
  const expected = new Float32Array(format.blockSize).fill(others);
  for (const [index, value] of Object.entries(values)) expected[Number(index)] = value;
  const out = new Float32Array(format.blockSize);
  format.dequantize(block, 0, out, 0, 1);
  expect(Array.from(out, (value) => value + 0)).toEqual(Array.from(expected, (value) => value + 0));
});
