import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { RuvLLMError, serializeError } from './errors.ts';
import { showValue } from './show-value.ts';

const nested = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as unknown;

test.each<[unknown, string]>([
  ['a"b', '"a\\"b"'],
  ['x'.repeat(200), `"${'x'.repeat(80)}…"`],
  [1.5, '1.5'],
  [Number.NaN, 'NaN'],
  [null, 'null'],
  [undefined, 'undefined'],
  [12n, '12'],
  [Symbol('a'), 'Symbol(a)'],
  [() => 1, 'a function'],
  [[], 'a list of 0 items'],
  [[1, 'a', [], [1], { a: 1 }, null], 'a list of 6 items, [1,"a",[],[…],{…},null]'],
  [Array.from({ length: 20 }, (_, i) => i), 'a list of 20 items, [0,1,2,3,4,5,6,7,…]'],
  [{}, 'an object'],
  [Object.create(null), 'an object'],
  [{ toString: 1, valueOf: 1 }, 'an object, {"toString":1,"valueOf":1}'],
  [JSON.parse('{"__proto__":{"a":1}}'), 'an object, {"__proto__":{…}}'],
])('%# a value is shown as in JSON', (value, expected) => {
  expect(showValue(value)).toBe(expected);
});

test('shows a value without calling it', () => {
  const fail = (): never => {
    throw new Error('called');
  };
  const hostile = Object.defineProperty({}, 'getter', { enumerable: true, get: fail });
  Object.assign(hostile, { toString: fail, valueOf: fail, toJSON: fail, length: fail, map: fail, join: fail });
  expect(showValue(hostile)).toMatch(/^an object, \{"getter":undefined,"toString":a function,/);
  expect(showValue([hostile, hostile])).toBe('a list of 2 items, [{…},{…}]');
  expect(showValue(nested(100_000))).toBe('a list of 1 items, [[…]]');
});

test('is short for every value', () => {
  fc.assert(
    fc.property(
      fc.anything({ withNullPrototype: true, withSparseArray: true }),
      (value) => showValue(value).length < 300,
    ),
  );
  expect(
    showValue(Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`${i}`.repeat(500), 'y'.repeat(500)]))).length,
  ).toBeLessThan(300);
});

test('an error of any value can be serialized', () => {
  for (const thrown of [{ toString: 1, valueOf: 1 }, Object.create(null), nested(60_000), Symbol('x')])
    expect(serializeError(thrown).code).toBe('internal');
  expect(serializeError(new RuvLLMError('io', 'x')).message).toBe('x');
});
