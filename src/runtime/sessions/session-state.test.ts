import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeSessionState, encodeSessionState } from './session-state.ts';

const state = (tokens: number[], numTurns = 3, lastUsedMs = 1.7e12) => ({
  tokenIds: Int32Array.from(tokens),
  numTokens: tokens.length,
  numTurns,
  lastUsedMs,
});

test('a state is read as it was written, at any place in a buffer', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(2 ** 31 - 1)), fc.nat(2 ** 32 - 1), fc.nat(), (tokens, numTurns, lastUsedMs) => {
      const written = state(tokens, numTurns, lastUsedMs);
      const bytes = encodeSessionState(written.tokenIds, written);
      expect(bytes).toHaveLength(16 + 4 * tokens.length);
      const shifted = new Uint8Array(bytes.length + 3);
      shifted.set(bytes, 3);
      expect(decodeSessionState(shifted.subarray(3), 2 ** 31)).toEqual(written);
    }),
  );
});

test('the layout: version, turns, last use, ids, little-endian', () => {
  const { tokenIds, ...rest } = state([258], 7, 1);
  const bytes = encodeSessionState(tokenIds, { tokenIds, ...rest });
  expect(Buffer.from(bytes).toString('hex')).toBe('0100000007000000000000000000f03f02010000');
});

test('what cannot be a state is refused with the numbers', () => {
  const bytes = encodeSessionState(Int32Array.of(4, 9), state([4, 9]));
  const changed = (offset: number, value: number): Uint8Array => {
    const copy = bytes.slice();
    copy[offset] = value;
    return copy;
  };
  const refusals: [Uint8Array, object][] = [
    [bytes.subarray(0, 12), { sizeBytes: 12 }],
    [bytes.subarray(0, 23), { sizeBytes: 23 }],
    [changed(0, 2), { version: 2 }],
    [changed(20, 10), { tokenId: 10, vocabSize: 10 }],
    [changed(23, 255), { tokenId: 0xff000009, vocabSize: 10 }],
  ];
  for (const [wrong, data] of refusals) {
    expect(() => decodeSessionState(wrong, 10)).toThrow(expect.objectContaining({ code: 'io', data }));
  }
  const noTime = bytes.slice();
  new DataView(noTime.buffer).setFloat64(8, Number.NaN, true);
  expect(() => decodeSessionState(noTime, 10)).toThrow(/last use is NaN/);
});
