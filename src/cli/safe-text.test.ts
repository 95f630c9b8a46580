import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapeForTerminal, escapeLine, toSafeJson } from './safe-text.ts';

/** Random code units, biased towards control characters and direction marks. */
const hostile = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0x9f }),
      fc.constantFrom(0x1b, 0x9b, 0x202e, 0x2066, 0x2028, 0xd800),
      fc.integer({ min: 0, max: 0xffff }),
    ),
  )
  .map((units) => String.fromCharCode(...units));

// Ranges instead of the character class of the code under test.
function isDangerous(code: number, allowed: readonly number[]): boolean {
  const isControl = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const isDirection = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return (isControl && !allowed.includes(code)) || isDirection;
}
const dangerous = (text: string, allowed: readonly number[]): number[] =>
  [...text].map((character) => character.codePointAt(0)!).filter((code) => isDangerous(code, allowed));

test('escapes control characters and direction marks, except line breaks and tabs', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      expect(dangerous(escapeForTerminal(text), [0x0a, 0x09])).toEqual([]);
      expect(dangerous(escapeLine(text), [])).toEqual([]);
    }),
  );
});

test('gives the same result for a text and its pieces', () => {
  fc.assert(
    fc.property(hostile, fc.nat(), (text, at) => {
      const cut = at % (text.length + 1);
      expect(escapeForTerminal(text.slice(0, cut)) + escapeForTerminal(text.slice(cut))).toBe(escapeForTerminal(text));
    }),
  );
});

test('leaves safe text unchanged', () => {
  const safe = 'Grüße, 世界 👩‍👩‍👧 שלום\n\ttab\u200f';
  expect(escapeForTerminal(safe)).toBe(safe);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      if (dangerous(text, [0x0a, 0x09]).length === 0) expect(escapeForTerminal(text)).toBe(text);
    }),
  );
});

test('replaces unsafe characters with visible escapes', () => {
  expect(escapeForTerminal('a\x1b[31mred\x07\x9b2J\x7f')).toBe('a\\x1b[31mred\\x07\\x9b2J\\x7f');
  expect(escapeForTerminal('one\r\ntwo\rthree')).toBe('one\ntwothree');
  expect(escapeForTerminal('file\u202egpj.exe')).toBe('file\\u{202e}gpj.exe');
  expect(escapeLine('a\nb\tc\rd\u2028e')).toBe('a\\nb\\tc\\rd\\u{2028}e');
});

test('escapes invisible characters in a line, keeps those of Hebrew and emoji in an answer', () => {
  const hidden = 'a\u200bb\u200fc\u061cd\ufeffe\u2060f\u{e0041}g';
  expect(escapeLine(hidden)).toBe('a\\u{200b}b\\u{200f}c\\u{061c}d\\u{feff}e\\u{2060}f\\u{e0041}g');
  expect(escapeForTerminal(hidden)).toBe(hidden);
  expect(escapeLine('👩‍👩‍👧')).toBe('👩‍👩‍👧');
});

test('writes JSON without unsafe characters and with the same value', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const json = toSafeJson({ text });
      expect(dangerous(json, [])).toEqual([]);
      expect(JSON.parse(json)).toEqual({ text });
    }),
  );
  expect(toSafeJson('\u009b2J\u202e\u{e0041}')).toBe(String.raw`"\u009b2J\u202e\udb40\udc41"`);
  expect(toSafeJson({ a: 1 }, 2)).toBe('{\n  "a": 1\n}');
});
