import type { Random } from '../core/random.ts';
import type { TopLogits } from '../core/top-logits.ts';
import { argmax, createCandidates, dropMasked, fillWeights } from './candidates.ts';
import type { Candidates } from './candidates.ts';
import { createChain } from './chain.ts';
import { checkLogits } from './check-logits.ts';
import { firstLogprobs, logSumExp, topLogprobs } from './logprobs.ts';
import { countCandidates, createTopCandidates } from './top-candidates.ts';
import type { Sampler, SamplingParams } from './types.ts';

/**
 * Compares one uniform number with the weights summed by ascending id, so the draw does not depend on how truncation
 * sorted.
 */
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

/** The sampler of one sequence; buffers are sized on the first call and reused. */
export function createSampler(params: SamplingParams, random: Random): Sampler {
  const chain = createChain(params);
  const topCandidates = createTopCandidates(params, chain);
  let candidates = createCandidates(0);

  const chooseFromAll = (logits: Float32Array, history: readonly number[]): number => {
    if (chain.length === 0 && params.temperature === 0) return argmax(logits, logits.length);
    if (candidates.ids.length !== logits.length) candidates = createCandidates(logits.length);
    candidates.count = logits.length;
    candidates.values.set(logits);
    for (const step of chain) if (step.kind === 'shape') step.apply(candidates, params, history);
    dropMasked(candidates);
    if (params.temperature === 0) return candidates.ids[argmax(candidates.values, candidates.count)] as number;
    for (const step of chain) if (step.kind === 'truncate') step.apply(candidates, params, history);
    return draw(candidates, params.temperature, random);
  };

  const chooseFromTop = (logits: Float32Array, history: readonly number[], top: TopLogits): number | null => {
    if (params.temperature === 0) return topCandidates.best(logits, history, top);
    const few = topCandidates.truncate(logits, history, top);
    return few === null ? null : draw(few, params.temperature, random);
  };

  const isDecidedBy = (top: TopLogits, numLogits: number): boolean =>
    isSound(top) && (params.temperature === 0 || topCandidates.isNucleusKnown(top, numLogits));

  return {
    numCandidates: countCandidates(params, chain),
    ...(topCandidates.areEnough ? { isDecidedBy } : {}),
    sample(logits, history, given) {
      const top = given !== undefined && isSound(given) ? given : null;
      if (top === null) checkLogits(logits);
      const tokenId = (top === null ? null : chooseFromTop(logits, history, top)) ?? chooseFromAll(logits, history);
      if (params.topLogprobs === null) {
        // The kernel that found the candidates has summed the row already; a sum of its own would cost every token.
        return { tokenId, logprob: top === null ? null : logprobOf(tokenId, logits, top), top: [] };
      }
      const logNormalizer = top === null ? logSumExp(logits) : top.max + Math.log(top.sumExp);
      return {
        tokenId,
        logprob: (logits[tokenId] as number) - logNormalizer,
        top:
          top === null
            ? topLogprobs(logits, logNormalizer, params.topLogprobs)
            : firstLogprobs(top, logNormalizer, params.topLogprobs),
      };
    },
  };
}

function logprobOf(tokenId: number, logits: Float32Array, { ids, values, max, sumExp }: TopLogits): number {
  const at = ids.indexOf(tokenId);
  return (at < 0 ? (logits[tokenId] as number) : (values[at] as number)) - max - Math.log(sumExp);
}

/** Whether sampling is possible; otherwise the whole row tells the reason. */
const isSound = ({ numBad, max }: TopLogits): boolean => numBad === 0 && max > -Infinity;
