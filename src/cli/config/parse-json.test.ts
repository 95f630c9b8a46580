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

test('takes what JSON.parse takes, and reads the same', () => {
  const text = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.tuple(fc.json({ maxDepth: 3 }), fc.nat(), fc.string()).map(([json, at, more]) => {
      const cut = at % (json.length + 1);
      return json.slice(0, cut) + more + json.slice(cut);
    }),
    fc.tuple(fc.json({ maxDepth: 3 }), fc.nat()).map(([json, at]) => json.slice(0, at % (json.length + 1))),
  );
  fc.assert(
    fc.property(text, (one) => {
      const native = nativeParse(one);
      const own = parseJson(one);
      if ('reason' in own) {
        // The one thing that is refused here and there is not.
        if (!own.reason.endsWith('is there twice')) expect(native).toBeNull();
      } else {
        expect(native).not.toBeNull();
        expect(own.value).toEqual(native!.value);
      }
    }),
    { numRuns: 1000 },
  );
});

test('knows the line of every key', () => {
  const parsed = parseJson('{\n  "a": 1,\n  "b": {\n\n    "c": [{"d": 1}]\n  }\n}');
  expect('lines' in parsed && Object.fromEntries(parsed.lines)).toEqual({ a: 2, b: 3, 'b.c': 5, 'b.c.d': 5 });
});

test.each([
  ['', { line: 1, reason: 'a value is expected' }],
  ['{\n  "a": 1,\n  "a": 2\n}', { line: 3, reason: '"a" is there twice' }],
  ['{\n  "a" 1}', { line: 2, reason: '":" is expected' }],
  ['{"a": 1,\n}', { line: 2, reason: 'a key in quotes is expected' }],
  ['{"a": sk-secret}', { line: 1, reason: 'a value is expected' }], // what is there may be a key, and is not shown
  ['{} x', { line: 1, reason: 'nothing more is expected' }],
  ['['.repeat(40), { line: 1, reason: 'more than 32 levels' }],
])('%j', (text, problem) => {
  expect(parseJson(text)).toEqual(problem);
});

test('no key reaches a prototype', () => {
  const parsed = parseJson('{"__proto__": {"polluted": true}}');
  expect(Object.keys((parsed as { value: object }).value)).toEqual(['__proto__']);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});
