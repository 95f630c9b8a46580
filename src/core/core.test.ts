import { expect, test } from 'vitest';
import { createMemorySource } from './byte-source.ts';
import { assert, deserializeError, RuvLLMError, serializeError } from './errors.ts';
import {
  booleanOption,
  choiceOption,
  integerOption,
  numberOption,
  optional,
  resolveOptions,
  stringListOption,
  stringOption,
} from './options.ts';
import { createRandom } from './random.ts';

interface Options {
  count: number;
  ratio: number;
  name: string;
  mode: 'a' | 'b';
  isOn: boolean;
  stops: readonly string[];
  limit: number | null;
}

const resolve = (options?: object): Readonly<Options> =>
  resolveOptions<Options>('test', options, {
    count: integerOption(3, 1, 10),
    ratio: numberOption(0.5, 0, 1),
    name: stringOption('x'),
    mode: choiceOption('a', ['a', 'b']),
    isOn: booleanOption(false),
    stops: stringListOption(2, 4),
    limit: optional(integerOption(0, 0, 9)),
  });

test('options: defaults are filled in and the result is frozen', () => {
  const options = resolve();
  expect(options).toEqual({ count: 3, ratio: 0.5, name: 'x', mode: 'a', isOn: false, stops: [], limit: null });
  expect(Object.isFrozen(options)).toBe(true);
});

test.each([
  [{ cuont: 3 }, 'unknown option "cuont" (did you mean count?)'],
  [{ __proto__: null, toString: 1 }, 'unknown option "toString"'],
  [{ count: 0 }, '"count" must be an integer from 1 to 10, got 0'],
  [{ count: 1.5 }, 'got 1.5'],
  [{ count: '3' }, 'got "3"'],
  [{ ratio: NaN }, 'got NaN'],
  [{ ratio: 1.01 }, 'a number from 0 to 1'],
  [{ name: 7 }, 'a string'],
  [{ mode: 'c' }, 'one of a, b'],
  [{ isOn: 1 }, 'true or false'],
  [{ stops: ['a', 'b', 'c'] }, 'at most 2 strings'],
  [{ stops: [''] }, '1 to 4 characters'],
  [{ stops: 'a' }, 'a list'],
  [{ limit: 10 }, 'from 0 to 9'],
  [{ stops: ['a', 'b', 'c'] }, 'got a list of 3 items'],
  [{ count: Object.create(null) }, 'got an object'],
])('options: rejects %o with a reason', (options, reason) => {
  expect(() => resolve(options)).toThrowError(
    expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining(reason) }),
  );
});

test('errors keep code, message, data and retryability when serialized', () => {
  const error = new RuvLLMError('io', 'disk 7 of 9', { data: { disk: 7 }, isRetryable: true, cause: new Error('x') });
  const back = deserializeError(structuredClone(serializeError(error)));
  expect(back).toBeInstanceOf(RuvLLMError);
  expect(back).toMatchObject({ code: 'io', message: 'disk 7 of 9', data: { disk: 7 }, isRetryable: true });
  expect(serializeError(new TypeError('boom'))).toMatchObject({ code: 'internal', message: 'boom' });
  expect(() => assert(false, 'x is 3')).toThrowError(expect.objectContaining({ code: 'internal' }));
});

test('a memory source reads ranges and rejects those outside it', () => {
  const source = createMemorySource(Uint8Array.of(1, 2, 3, 4));
  const target = new Uint8Array(2);
  source.readInto(target, 2);
  expect([...target]).toEqual([3, 4]);
  for (const offset of [3, -1, 2 ** 40]) {
    expect(() => source.readInto(target, offset)).toThrowError(expect.objectContaining({ code: 'io' }));
  }
});

test('random: a seed fixes the stream, similar seeds give unrelated ones, values are uniform in [0, 1)', () => {
  const draw = (seed: number, count: number): number[] => {
    const random = createRandom(seed);
    return Array.from({ length: count }, () => random.next());
  };
  expect(draw(42, 5)).toEqual(draw(42, 5));
  expect(draw(42, 3)).toEqual([0.5767213890841907, 0.21293001466432804, 0.23419718284633795]);
  expect(draw(2 ** 40 + 42, 5)).not.toEqual(draw(42, 5));
  const firsts = Array.from({ length: 4000 }, (_, seed) => draw(seed, 1)[0]!);
  for (const values of [firsts, draw(7, 4000)]) {
    const bins = Array.from({ length: 20 }, () => 0);
    for (const value of values) bins[Math.floor(value * 20)]!++;
    // Chi-square with 19 degrees of freedom: above 43.8 once in a thousand.
    expect(bins.reduce((sum, n) => sum + (n - 200) ** 2 / 200, 0)).toBeLessThan(43.8);
  }
});
