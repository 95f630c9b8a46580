import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { bfloatToFloat, floatToBfloat, floatToHalf, halfFloats, halfToFloat } from './half.ts';

/** Binary16 by counting: positive halves are 0, 1, 2, … units of 2^-24; the unit doubles every 1024. */
function* positiveHalves(): Generator<number> {
  let value = 0;
  let unit = 2 ** -24;
  for (let bits = 0; bits < 0x7c00; bits++) {
    yield value;
    if (bits >= 0x800 && bits % 0x400 === 0) unit *= 2;
    value += unit;
  }
  yield Infinity;
}
const POSITIVE = [...positiveHalves()];

/** The half patterns for which `isRight` fails: one expectation instead of 65536 slow ones. */
function wrongPatterns(isRight: (bits: number) => boolean, end = 65536): string[] {
  const wrong: string[] = [];
  for (let bits = 0; bits < end; bits++) if (!isRight(bits)) wrong.push(bits.toString(16));
  return wrong;
}

test('every finite half and both infinities have the value found by counting', () => {
  expect(POSITIVE[0x7bff]).toBe(65504);
  expect(POSITIVE.length).toBe(0x7c01);
  expect(wrongPatterns((bits) => Object.is(halfToFloat(bits), POSITIVE[bits]), 0x7c01)).toEqual([]);
  expect(wrongPatterns((bits) => Object.is(halfToFloat(bits | 0x8000), -POSITIVE[bits]!), 0x7c01)).toEqual([]);
});

test('every half but NaN survives conversion to float and back, and NaN stays NaN', () => {
  const survives = (bits: number): boolean => {
    if ((bits & 0x7fff) <= 0x7c00) return floatToHalf(halfToFloat(bits)) === bits;
    return Number.isNaN(halfToFloat(bits)) && (floatToHalf(NaN) & 0x7fff) === 0x7e00;
  };
  expect(wrongPatterns(survives)).toEqual([]);
});

test('floats between two halves round to the nearer one, and ties to even', () => {
  const float = new Float32Array(1);
  const floatBits = new Uint32Array(float.buffer);
  const roundsRight = (bits: number): boolean => {
    const above = bits === 0x7bff ? 65536 : POSITIVE[bits + 1]!;
    const middle = (POSITIVE[bits]! + above) / 2;
    const even = bits + (bits & 1);
    float[0] = middle;
    floatBits[0]! += 1;
    const justAbove = floatToHalf(float[0]);
    floatBits[0]! -= 2;
    const justBelow = floatToHalf(float[0]);
    const isMiddleRight = floatToHalf(middle) === even && floatToHalf(-middle) === (even | 0x8000);
    return isMiddleRight && justAbove === bits + 1 && justBelow === bits;
  };
  expect(wrongPatterns(roundsRight, 0x7c00)).toEqual([]);
});

test('the table equals halfToFloat', () => {
  const table = halfFloats();
  expect(table.length).toBe(65536);
  expect(wrongPatterns((bits) => Object.is(table[bits], halfToFloat(bits)))).toEqual([]);
  expect(halfFloats()).toBe(table);
});

test('a bfloat is the upper half of a float', () => {
  const view = new DataView(new ArrayBuffer(4));
  const isUpperHalf = (bits: number): boolean => {
    view.setUint32(0, bits * 65536);
    const value = bfloatToFloat(bits);
    return Object.is(value, view.getFloat32(0)) && (Number.isNaN(value) || floatToBfloat(value) === bits);
  };
  expect(wrongPatterns(isUpperHalf)).toEqual([]);
  expect(bfloatToFloat(floatToBfloat(NaN))).toBeNaN();
});

test('floats between two bfloats round to the nearer one, and ties to even', () => {
  const view = new DataView(new ArrayBuffer(4));
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0x7f7f }), fc.integer({ min: 0, max: 0xffff }), (upper, lower) => {
      view.setUint32(0, upper * 65536 + lower);
      const isUp = lower > 0x8000 || (lower === 0x8000 && upper % 2 === 1);
      expect(floatToBfloat(view.getFloat32(0))).toBe(upper + (isUp ? 1 : 0));
      expect(floatToBfloat(-view.getFloat32(0))).toBe((upper + (isUp ? 1 : 0)) | 0x8000);
    }),
    { examples: [[0x3f80, 0x8000], [0x3f81, 0x8000], [0x7f7f, 0xffff]] }, // prettier-ignore
  );
});
