import type { Random } from '../core/random.ts';
import { argmax, createCandidates, dropMasked, fillWeights } from './candidates.ts';
import type { Candidates } from './candidates.ts';
import { createChain } from './chain.ts';
import { checkLogits } from './check-logits.ts';
import { logSumExp, topLogprobs } from './logprobs.ts';
import type { Sampler, SamplingParams } from './types.ts';

/** One uniform number against the weights added up by ascending id, so that the draw does not depend on how truncation sorted. */
function draw(candidates: Candidates, temperature: number, random: Random): number {
  const { ids, weights, count } = candidates;
  const target = random.next() * fillWeights(candidates, temperature);
  let sum = 0;
  let lastPossible = 0;
  for (let i = 0; i < count; i++) {
    if (weights[i] === 0) continue;
    lastPossible = i;
    sum += weights[i] as number;
    if (sum > target) break;
  }
  return ids[lastPossible] as number;
}

/** The chain of samplers for one sequence; its buffers are sized on the first call and reused. */
export function createSampler(params: SamplingParams, random: Random): Sampler {
  const chain = createChain(params);
  let candidates = createCandidates(0);

  const choose = (logits: Float32Array, history: readonly number[]): number => {
    if (chain.length === 0 && params.temperature === 0) return argmax(logits, logits.length);
    candidates.count = logits.length;
    candidates.values.set(logits);
    for (const step of chain) if (step.kind === 'shape') step.apply(candidates, params, history);
    dropMasked(candidates);
    if (params.temperature === 0) return candidates.ids[argmax(candidates.values, candidates.count)] as number;
    for (const step of chain) if (step.kind === 'truncate') step.apply(candidates, params, history);
    return draw(candidates, params.temperature, random);
  };

  return {
    sample(logits, history) {
      checkLogits(logits);
      if (candidates.ids.length !== logits.length) candidates = createCandidates(logits.length);
      const tokenId = choose(logits, history);
      if (params.topLogprobs === null) return { tokenId, logprob: null, top: [] };
      const logNormalizer = logSumExp(logits);
      return {
        tokenId,
        logprob: (logits[tokenId] as number) - logNormalizer,
        top: topLogprobs(logits, logNormalizer, params.topLogprobs, candidates.order),
      };
    },
  };
}
