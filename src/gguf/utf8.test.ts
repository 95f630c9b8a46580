import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeUtf8, encodeUtf8 } from './utf8.ts';

const oracle = (bytes: Uint8Array): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
};

test('decodes random bytes like the platform', () => {
  const sequenceBytes = fc.constantFrom(
    0x41,
    0x7f,
    0x80,
    0xbf,
    0xc0,
    0xc1,
    0xc2,
    0xdf,
    0xe0,
    0x9f,
    0xa0,
    0xed,
    0xef,
    0xf0,
    0x90,
    0xf4,
    0xf5,
    0xff,
  );
  fc.assert(
    fc.property(fc.array(sequenceBytes, { maxLength: 6 }), (list) => {
      const bytes = Uint8Array.from([0xff, ...list, 0x80]);
      expect(decodeUtf8(bytes, 1, bytes.length - 1)).toBe(oracle(Uint8Array.from(list)));
    }),
    { numRuns: 2000 },
  );
});

test('preserves every code point in short and long texts', () => {
  for (let point = 0; point <= 0x10ffff; point += point < 0x3000 ? 1 : 61) {
    if (point >= 0xd800 && point < 0xe000) continue;
    const text = String.fromCodePoint(point);
    const bytes = encodeUtf8(text)!;
    if (decodeUtf8(bytes, 0, bytes.length) !== text) expect.fail(`U+${point.toString(16)}`);
  }
  const long = '\ufeffĠ😀'.repeat(100);
  const bytes = encodeUtf8(long)!;
  expect(decodeUtf8(bytes, 0, bytes.length)).toBe(long);
});

test('encodes surrogate pairs and rejects lone surrogates', () => {
  expect(encodeUtf8('\ud83d')).toBeNull();
  expect(encodeUtf8('a\ude00')).toBeNull();
  expect(encodeUtf8('\ude00\ud83d')).toBeNull();
  expect(encodeUtf8('\ud83d\ude00')).toEqual(Uint8Array.of(0xf0, 0x9f, 0x98, 0x80));
});
