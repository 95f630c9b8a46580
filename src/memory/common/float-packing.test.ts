import { assert, float32Array, property, uint8Array } from 'fast-check';
import { expect, test } from 'vitest';
import { packFloats, toBase64, unpackFloats } from './float-packing.ts';

test('bytes are written as btoa and Node write them', () => {
  assert(
    property(uint8Array({ maxLength: 70 }), (bytes) => {
      const text = toBase64(bytes);
      expect(text).toBe(btoa(String.fromCharCode(...bytes)));
      expect(new Uint8Array(Buffer.from(text, 'base64'))).toEqual(bytes);
    }),
  );
  const many = Uint8Array.from({ length: 300_001 }, (_, i) => (i * 7919) & 255);
  expect(toBase64(many)).toBe(Buffer.from(many).toString('base64'));
});

test('returns floats bit by bit', () => {
  assert(
    property(float32Array({ noNaN: true }), (values) => {
      expect(unpackFloats(packFloats(values))).toEqual(values);
    }),
  );
});
