import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJson } from './parse-json.ts';

const nativeParse = (text: string): { value: unknown } | null => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
};

test('accepts the same texts as JSON.parse, with the same values', () => {
  const text = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.tuple(fc.json({ maxDepth: 3 }), fc.nat(), fc.string()).map(([json, at, insertion]) => {
      const cut = at % (json.length + 1);
      return json.slice(0, cut) + insertion + json.slice(cut);
    }),
    fc.tuple(fc.json({ maxDepth: 3 }), fc.nat()).map(([json, at]) => json.slice(0, at % (json.length + 1))),
  );
  fc.assert(
    fc.property(text, (json) => {
      const expected = nativeParse(json);
      const parsed = parseJson(json);
      if ('reason' in parsed) {
        // JSON.parse accepts duplicate keys.
        if (!parsed.reason.startsWith('duplicate key')) expect(expected).toBeNull();
      } else {
        expect(expected).not.toBeNull();
        expect(parsed.value).toEqual(expected!.value);
      }
    }),
    { numRuns: 1000 },
  );
});

test('records the line of every key', () => {
  const parsed = parseJson('{\n  "a": 1,\n  "b": {\n\n    "c": [{"d": 1}]\n  }\n}');
  expect('lines' in parsed && Object.fromEntries(parsed.lines)).toEqual({ a: 2, b: 3, 'b.c': 5, 'b.c.d': 5 });
});

test.each([
  ['', { line: 1, reason: 'expected a value' }],
  ['{\n  "a": 1,\n  "a": 2\n}', { line: 3, reason: 'duplicate key "a"' }],
  ['{\n  "a" 1}', { line: 2, reason: 'expected ":"' }],
  ['{"a": 1,\n}', { line: 2, reason: 'expected a quoted key' }],
  ['{"a": sk-secret}', { line: 1, reason: 'expected a value' }], // the text may be a secret and is not quoted
  ['{} x', { line: 1, reason: 'unexpected text after the value' }],
  ['['.repeat(40), { line: 1, reason: 'more than 32 levels' }],
])('rejects %j with line and reason', (text, problem) => {
  expect(parseJson(text)).toEqual(problem);
});

test('does not change prototypes', () => {
  const parsed = parseJson('{"__proto__": {"polluted": true}}');
  expect(Object.keys((parsed as { value: object }).value)).toEqual(['__proto__']);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});
