import { expect, test } from 'vitest';
import { createMetadata } from './metadata.ts';
import type { MetadataValue } from './types.ts';

const metadata = createMetadata(
  new Map<string, MetadataValue>([
    ['s', 'text'],
    ['n', 7],
    ['big', 2n ** 60n],
    ['b', false],
    ['strings', ['a', 'b']],
    ['none', []],
    ['i32', Int32Array.of(1, 2)],
    ['u64', BigUint64Array.of(1n, 2n)],
    ['huge', BigUint64Array.of(2n ** 53n)],
    ['bools', [true]],
  ]),
  'm.gguf',
);

test('returns values of the requested kind', () => {
  expect(metadata.string('s')).toBe('text');
  expect(metadata.number('n')).toBe(7);
  expect(metadata.boolean('b')).toBe(false);
  expect(metadata.strings('strings')).toEqual(['a', 'b']);
  expect(metadata.strings('none')).toEqual([]);
  expect(metadata.numbers('i32')).toEqual(Int32Array.of(1, 2));
  expect(metadata.numbers('u64')).toEqual(Float64Array.of(1, 2));
  expect(metadata.get('big')).toBe(2n ** 60n);
  expect(metadata.get('absent')).toBeUndefined();
});

test('uses defaults only for absent keys', () => {
  expect(metadata.string('absent', '')).toBe('');
  expect(metadata.number('absent', 0)).toBe(0);
  expect(metadata.boolean('absent', false)).toBe(false);
  expect(metadata.boolean('b', true)).toBe(false);
  expect(() => metadata.number('s', 1)).toThrow('metadata key "s" must be a number below 2^53, got string');
});

test.each<[() => unknown, string]>([
  [() => metadata.string('absent'), 'm.gguf: metadata key "absent" (a string) is missing'],
  [() => metadata.string('n'), 'm.gguf: metadata key "n" must be a string, got number'],
  [() => metadata.number('big'), 'must be a number below 2^53, got bigint'],
  [() => metadata.number('b'), 'got boolean'],
  [() => metadata.boolean('n'), 'must be true or false, got number'],
  [() => metadata.strings('i32'), 'must be a list of strings, got Int32Array'],
  [() => metadata.strings('bools'), 'must be a list of strings, got array of 1'],
  [() => metadata.strings('s'), 'must be a list of strings, got string'],
  [() => metadata.numbers('strings'), 'must be a list of numbers, got array of 2'],
  [() => metadata.numbers('huge'), 'must be a list of numbers, got BigUint64Array'],
  [() => metadata.numbers('n'), 'must be a list of numbers, got number'],
])('names the key and both kinds for %s', (look, message) => {
  expect(look).toThrow(
    expect.objectContaining({ code: 'invalid_model_file', message: expect.stringContaining(message) }),
  );
});
