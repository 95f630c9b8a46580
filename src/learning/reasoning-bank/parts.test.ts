import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import type { HeardPattern } from './near-patterns.ts';
import { blendPatterns, MAX_BANK_SHARE } from './blend.ts';
import { clusterVectors, normalized } from './k-means.ts';
import { poolSamples } from './pattern.ts';
import { recommendModel } from './recommend.ts';
import { sampleOf, welchP } from './welch.ts';

describe("Welch's test", () => {
  test('matches the p values of t tables', () => {
    // t = 1 with 8 degrees of freedom, two-sided.
    expect(welchP(sampleOf([1, 2, 3, 4, 5]), sampleOf([2, 3, 4, 5, 6]))).toBeCloseTo(0.34659, 5);
    // t = 2.776 with 4 degrees of freedom is the 5 % point: means sqrt(2/3) * 2.7764 apart, variances 1, three each.
    const shift = 2.776445 * Math.sqrt(2 / 3);
    expect(welchP(sampleOf([-1, 0, 1]), sampleOf([shift - 1, shift, shift + 1]))).toBeCloseTo(0.05, 5);
  });

  test('gives p 0 for constant samples and p 1 for single values', () => {
    expect(welchP(sampleOf([1, 1, 1]), sampleOf([0, 0, 0]))).toBe(0);
    expect(welchP(sampleOf([1, 1, 1]), sampleOf([1, 1, 1]))).toBe(1);
    expect(welchP(sampleOf([1]), sampleOf([0, 0, 0]))).toBe(1);
  });
});

test('pooling two samples equals the sample of all values', () => {
  const values = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(values, values, (a, b) => {
      const pooled = poolSamples(sampleOf(a), sampleOf(b));
      const whole = sampleOf([...a, ...b]);
      expect(pooled.count).toBe(whole.count);
      expect(pooled.mean).toBeCloseTo(whole.mean, 10);
      expect(pooled.variance).toBeCloseTo(whole.variance, 10);
    }),
  );
});

describe('clusters', () => {
  const vectors = Array.from({ length: 60 }, (_, i) => {
    const random = createRandom(i);
    return normalized(Float32Array.from({ length: 8 }, (_unused, d) => (d === i % 3 ? 1 : 0) + random.next() * 0.1));
  });

  test('group near vectors, the same way for the same seed', () => {
    const first = clusterVectors(vectors, { k: 3, random: createRandom(1) });
    expect(new Set(vectors.map((_, i) => `${i % 3}:${first.labels[i]}`)).size).toBe(3);
    expect(clusterVectors(vectors, { k: 3, random: createRandom(1) })).toEqual(first);
    for (const centroid of first.centroids) expect(Math.hypot(...centroid)).toBeCloseTo(1, 5);
  });

  test('are at most as many as distinct vectors', () => {
    const same = Array.from({ length: 5 }, () => normalized(Float32Array.of(1, 2)));
    const { centroids, labels } = clusterVectors(same, { k: 4, random: createRandom(1) });
    expect([centroids.length, ...labels]).toEqual([1, 0, 0, 0, 0, 0]);
    expect(clusterVectors([], { k: 4, random: createRandom(1) }).centroids).toEqual([]);
  });

  test('have a centroid for every label', () => {
    const vector = fc
      .array(fc.integer({ min: -3, max: 3 }), { minLength: 3, maxLength: 3 })
      .map((v) => normalized(Float32Array.from(v)));
    fc.assert(
      fc.property(fc.array(vector, { minLength: 1, maxLength: 30 }), fc.integer({ min: 1, max: 8 }), (given, k) => {
        const { centroids, labels } = clusterVectors(given, { k, random: createRandom(3) });
        expect(new Set(labels)).toEqual(new Set(centroids.keys()));
      }),
    );
  });
});

test('recommends a model only over others with enough answers', () => {
  const [good, bad] = [sampleOf([0.9, 0.8, 1]), sampleOf([0.1, 0, 0.2])];
  expect(recommendModel({ a: good, b: bad })).toBe('a');
  expect(recommendModel({ a: good })).toBeNull();
  expect(recommendModel({ a: good, b: sampleOf([0.1, 0]) })).toBeNull();
  expect(recommendModel({ a: good, b: bad, c: sampleOf([0.9, 1, 0.7]) })).toBeNull();
});

describe('patterns in routing', () => {
  const found = (recommendedModel: string | null, confidence: number, similarity = 1) =>
    ({ pattern: { recommendedModel, confidence }, similarity, weight: similarity * confidence }) as HeardPattern;

  test('weigh at most 30 %, and nothing below a confidence of 0.5', () => {
    const many = Array.from({ length: 50 }, () => found('b', 1));
    const blended = blendPatterns([0.9, 0.1], ['a', 'b'], many);
    expect(blended.share).toBe(MAX_BANK_SHARE);
    expect(blended.probs[1]).toBeCloseTo(0.7 * 0.1 + 0.3, 10);
    expect(blendPatterns([0.9, 0.1], ['a', 'b'], [found('b', 0.5)])).toEqual({
      probs: [0.9, 0.1],
      share: 0,
      votedIds: [],
    });
    expect(blendPatterns([0.9, 0.1], ['a', 'b'], [found('gone', 1), found(null, 1)]).share).toBe(0);
  });

  test('leave probabilities that sum to 1', () => {
    const { probs } = blendPatterns([0.2, 0.5, 0.3], ['a', 'b', 'c'], [found('a', 0.6, 0.4), found('c', 0.9, 0.2)]);
    expect(probs.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 12);
  });
});
