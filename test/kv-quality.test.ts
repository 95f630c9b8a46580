// The effect of packing on distributions, against its limits: `npm run bench -- kv-quality` on a small model.
import { expect, test } from 'vitest';
import { createKlMeter, type KlResult } from '../src/core/kl-meter.ts';
import {
  comparePolicies,
  isWithinLimit,
  type KvPolicy,
  type KvPrecisions,
  limitsFor,
} from '../bench/support/kv-quality.ts';
import type { LoadedModel } from '../src/models/types.ts';
import { loadRandom } from './support/run-model.ts';

test('[KP1] computes the divergence of distributions in nats', () => {
  const meter = createKlMeter();
  const logits = (...probabilities: number[]): Float32Array => Float32Array.from(probabilities, (p) => Math.log(p) + 3); // A constant changes nothing.
  meter.add(logits(0.5, 0.25, 0.25), logits(0.5, 0.25, 0.25));
  meter.add(logits(0.5, 0.25, 0.25), logits(0.25, 0.5, 0.25));
  const { meanKl, p99Kl, top1, numTokens } = meter.result();
  const expected = 0.5 * Math.log(2) + 0.25 * Math.log(0.5);
  expect(p99Kl).toBeCloseTo(expected, 6);
  expect(meanKl).toBeCloseTo(expected / 2, 6);
  expect({ top1, numTokens }).toEqual({ top1: 0.5, numTokens: 2 });
});

const NUM_TOKENS = 96;
const text = Array.from({ length: NUM_TOKENS }, (_, i) => 3 + ((i * i * 37 + i * 11) % 300));
const policies: KvPolicy[] = (['q8', 'q4', null] as const).map((packed) => ({ packed, tailTokens: 32 }));

async function measure(
  spoil: (model: LoadedModel) => void = () => {},
): Promise<Record<'q8' | 'q4' | 'floor', KlResult>> {
  const load = async (precisions: KvPrecisions): Promise<LoadedModel> => {
    const shape = { numLayers: 2, contextLength: NUM_TOKENS };
    const limits = limitsFor(NUM_TOKENS, precisions);
    const model = await loadRandom({ architecture: 'llama', type: 'F32', seed: 3, shape }, { limits });
    spoil(model);
    return model;
  };
  const [q8, q4, floor] = await comparePolicies(load, [text, text.toReversed()], policies);
  // The rows after the first page behind the tail, of two texts.
  for (const result of [q8, q4, floor]) expect(result!.numTokens).toBe(2 * (NUM_TOKENS - 32 - 16));
  return { q8: q8!, q4: q4!, floor: floor! };
}

test('[KP1] 4 bits differ more than 8, 8 more than none, and both stay within their limits', async () => {
  const { q8, q4, floor } = await measure();
  expect(floor.meanKl).toBeGreaterThan(0);
  expect(q8.meanKl).toBeGreaterThan(floor.meanKl * 2);
  expect(q4.meanKl).toBeGreaterThan(q8.meanKl * 3);
  expect([isWithinLimit('q8', q8, floor), isWithinLimit('q4', q4, floor)]).toEqual([true, true]);
});

test('[KP1] lossy packing, or a result that is not a number, exceeds the limit', async () => {
  const { q8, q4, floor } = await measure(({ pages }) => {
    const { packPages } = pages;
    pages.packPages = async (moves) => {
      await packPages(moves);
      for (const { to } of moves) pages.bytesOf('packed', to).subarray(-64).fill(0);
    };
  });
  expect([isWithinLimit('q8', q8, floor), isWithinLimit('q4', q4, floor)]).toEqual([false, false]);
  expect(isWithinLimit('q8', { ...q8, meanKl: NaN }, floor)).toBe(false);
});
