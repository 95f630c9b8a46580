import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJson } from './json-reader.ts';
import { createJsonScanner } from './json-scan.ts';

/** The length of the first value in characters; null: malformed or unterminated. */
function scan(text: string): number | null {
  const feed = createJsonScanner();
  for (let i = 0; i < text.length; i++) {
    const result = feed(text[i]!);
    if (result === 'bad') return null;
    if (result === 'done') return i + 1;
    if (result === 'after') return i;
  }
  return null;
}

test('accepts every JSON value and finds its end', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const json = JSON.stringify(value, null, indent);
      expect(scan(`${json} ]x`)).toBe(json.length);
    }),
    { numRuns: 500, seed: 1 },
  );
});

test('accepts exactly the texts that JSON.parse accepts', () => {
  const parts = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\u00',
    '0',
    '-',
    '1',
    '.',
    'e',
    '+',
    'true',
    'nul',
    'l',
    ' ',
    '\n',
    'é',
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 9 }), (list) => {
      const text = `[${list.join('')}]`;
      expect(scan(text) === text.length).toBe(parseJson(text) !== undefined);
    }),
    { numRuns: 20_000, seed: 2 },
  );
});

test('limits the number of open brackets', () => {
  expect(scan('['.repeat(256) + ']'.repeat(256))).toBe(512);
  expect(scan('['.repeat(257) + ']'.repeat(257))).toBeNull();
});
