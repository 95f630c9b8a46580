import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { type MetadataEntry, openGguf } from '../gguf/index.ts';
import { buildRandomModel, type RandomModelOptions } from '../../test/support/random-model.ts';
import { plainRope, readRope, type RopeVariant, writeCosSin } from './rope.ts';
import { readShape } from './shape.ts';

const shape = { numLayers: 1, vocabSize: 260 };

function ropeOf(
  metadata: readonly MetadataEntry[],
  options: Partial<RandomModelOptions> = {},
  maxContextTokens = 256,
): RopeVariant {
  const omit = (name: string): boolean => name === 'rope_freqs.weight';
  const bytes = buildRandomModel({ architecture: 'llama', type: 'F32', seed: 1, shape, omit, metadata, ...options });
  const gguf = openGguf(createMemorySource(bytes));
  return readRope({ gguf, shape: readShape(gguf), maxContextTokens }, 'adjacent');
}

const number = (key: string, value: number): MetadataEntry => ({ key: `llama.rope.${key}`, type: 'f32', value });
const count = (key: string, value: number): MetadataEntry => ({ key: `llama.rope.${key}`, type: 'u32', value });
const type = (value: string): MetadataEntry => ({ key: 'llama.rope.scaling.type', type: 'string', value });
const plain = Array.from({ length: 8 }, (_, i) => 10000 ** (-i / 8));
const close = (values: ArrayLike<number>, expected: readonly number[]): void => {
  expect(values).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(values[i]! / value).toBeCloseTo(1, 6));
};

describe('readRope', () => {
  test('falls from 1 to 1/base over the pairs', () => {
    const rope = ropeOf([]);
    expect(rope).toMatchObject({ rotaryDim: 16, magnitude: 1, pairing: 'adjacent' });
    close(rope.frequencies, plain);
    close(ropeOf([count('dimension_count', 8)]).frequencies, [1, 0.1, 0.01, 0.001]);
  });

  test('linear divides every frequency, by either key; none ignores the factor', () => {
    const quarter = plain.map((value) => value / 4);
    close(ropeOf([number('scaling.factor', 4)]).frequencies, quarter);
    close(ropeOf([type('linear'), number('scale_linear', 4)]).frequencies, quarter);
    close(ropeOf([number('scaling.factor', 0)]).frequencies, plain);
    close(ropeOf([type('none'), number('scaling.factor', 4)]).frequencies, plain);
  });

  test('yarn keeps the fast pairs, stretches the slow ones and raises the magnitude', () => {
    const { frequencies, magnitude } = ropeOf([
      type('yarn'),
      number('scaling.factor', 4),
      count('scaling.original_context_length', 4096),
      number('scaling.attn_factor', 2),
    ]);
    // 16 * ln(4096 / 64π) / (2 ln 10000) = 2.6 and 16 * ln(4096 / 2π) / (2 ln 10000) = 5.6: pairs 2 to 6.
    const weights = [1, 1, 1, 0.75, 0.5, 0.25, 0, 0];
    close(
      frequencies,
      plain.map((value, i) => value * (weights[i]! + (1 - weights[i]!) / 4)),
    );
    expect(magnitude).toBeCloseTo(2 * (1 + 0.1 * Math.log(4)), 6);
  });

  test('tensors divide pair by pair: one set, or a short and a long one', () => {
    const ones = new Float32Array(8).fill(1);
    const three = { 'rope_freqs.weight': ones.map((_, i) => i + 1) };
    close(
      ropeOf([], { omit: () => false, vectors: three }).frequencies,
      plain.map((value, i) => value / (i + 1)),
    );
    const both = { 'rope_factors_short.weight': ones.map(() => 2), 'rope_factors_long.weight': ones.map(() => 8) };
    const metadata = [type('longrope'), count('scaling.original_context_length', 100)];
    close(
      ropeOf(metadata, { vectors: both }, 100).frequencies,
      plain.map((value) => value / 2),
    );
    close(
      ropeOf(metadata, { vectors: both }, 101).frequencies,
      plain.map((value) => value / 8),
    );
  });

  test.each([
    [type('spiral'), 'unsupported', 'spiral'],
    [type('toString'), 'unsupported', 'toString'],
    [type('__proto__'), 'unsupported', '__proto__'],
    [number('freq_base', -1), 'invalid_model_file', 'freq_base is -1'],
    [number('scaling.factor', -4), 'invalid_model_file', 'scaling.factor is -4'],
    [count('dimension_count', 7), 'invalid_model_file', 'dimension_count is 7'],
    [count('dimension_count', 18), 'invalid_model_file', 'must be from 1 to 16'],
  ])('rejects %o', (entry, code, text) => {
    expect(() => ropeOf([entry])).toThrowError(
      expect.objectContaining({ code, message: expect.stringContaining(text) }),
    );
  });

  test('rejects factors that are not positive and names the tensor', () => {
    const vectors = { 'rope_freqs.weight': new Float32Array(8) };
    expect(() => ropeOf([], { omit: () => false, vectors })).toThrowError(/rope_freqs\.weight: factor 0 is 0/);
  });
});

test('a plain rope rejects a base that is not positive', () => {
  for (const base of [-1, 0, NaN, Infinity]) {
    expect(() => plainRope(8, base, 'halves')).toThrowError(expect.objectContaining({ code: 'invalid_model_file' }));
  }
});

test('writeCosSin writes cos and sin of each pair, times the magnitude', () => {
  const out = new Float32Array(8);
  const frequencies = Float64Array.of(1, 0.5);
  writeCosSin({ pairing: 'halves', rotaryDim: 4, frequencies, magnitude: 2 }, [0, Math.PI], out);
  const expected = [2, 0, 2, 0, -2, 0, 0, 2];
  expected.forEach((value, i) => expect(out[i]).toBeCloseTo(value, 6));
});
