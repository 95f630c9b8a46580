import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createStreamDecoder, unfinishedTail } from './stream-decoder.ts';

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

test('holds back exactly the bytes that may still become a character', () => {
  expect(unfinishedTail(bytes())).toBe(0);
  expect(unfinishedTail(bytes(0x61))).toBe(0);
  expect(unfinishedTail(bytes(0xc3))).toBe(1);
  expect(unfinishedTail(bytes(0xc3, 0xa9))).toBe(0);
  expect(unfinishedTail(bytes(0xe2, 0x82))).toBe(2);
  expect(unfinishedTail(bytes(0xf0, 0x9f, 0x98))).toBe(3);
  expect(unfinishedTail(bytes(0xf0, 0x9f, 0x98, 0x80))).toBe(0);
  // Never the start of a character: an overlong form, a surrogate, above U+10FFFF, lone continuation bytes.
  for (const broken of [[0xc0], [0xe0, 0x80], [0xed, 0xa0], [0xf4, 0x90], [0xf5], [0x80, 0x80]]) {
    expect(unfinishedTail(bytes(...broken))).toBe(0);
  }
});

test('streamed pieces equal one decode of all bytes, including invalid ones', () => {
  const awkward = fc.constantFrom(
    0x61,
    0x20,
    0x80,
    0xbf,
    0xc3,
    0xe0,
    0xa0,
    0xed,
    0x9f,
    0xef,
    0xbb,
    0xf0,
    0x90,
    0xf4,
    0xff,
  );
  const token = fc.uint8Array({ maxLength: 3 });
  const awkwardToken = fc.array(awkward, { maxLength: 3 }).map((values) => Uint8Array.from(values));
  fc.assert(
    fc.property(fc.array(fc.oneof(token, awkwardToken)), (tokens) => {
      const decoder = createStreamDecoder((id) => tokens[id]!, false);
      const text = tokens.map((_, id) => decoder.push(id)).join('') + decoder.flush();
      const whole = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes(...tokens.flatMap((t) => [...t])));
      expect(text).toBe(whole);
    }),
    { numRuns: 1000 },
  );
});

test('removes one leading space, only from the first token', () => {
  const decoder = createStreamDecoder((id) => new TextEncoder().encode(['', ' a', ' b'][id]), true);
  expect([0, 1, 2].map((id) => decoder.push(id))).toEqual(['', 'a', ' b']);
});
