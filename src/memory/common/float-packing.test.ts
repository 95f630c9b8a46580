import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packFloats, toBase64, unpackFloats } from './float-packing.ts';

test('bytes are written as btoa and Node write them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      const text = toBase64(bytes);
      expect(text).toBe(btoa(String.fromCharCode(...bytes)));
      expect(new Uint8Array(Buffer.from(text, 'base64'))).toEqual(bytes);
    }),
  );
  const many = Uint8Array.from({ length: 300_001 }, (_, i) => (i * 7919) & 255);
  expect(toBase64(many)).toBe(Buffer.from(many).toString('base64'));
});

test('floats come back to the bit', () => {
  fc.assert(
    fc.property(fc.float32Array({ noNaN: true }), (values) => {
      expect(unpackFloats(packFloats(values))).toEqual(values);
    }),
  );
});
