import type { TopLogits } from '../core/top-logits.ts';
import { argmax } from './candidates.ts';
import { selectTopK, sortByRank } from './select.ts';
import type { TokenLogprob } from './types.ts';

/** log of the sum of exp(logits), which normalizes a logit to a log-probability. */
export function logSumExp(logits: Float32Array): number {
  const max = logits[argmax(logits, logits.length)] as number;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp((logits[i] as number) - max);
  return max + Math.log(sum);
}

/** The `count` likeliest tokens, best first. */
export function topLogprobs(logits: Float32Array, logNormalizer: number, count: number): TokenLogprob[] {
  const size = Math.min(count, logits.length);
  if (size === 0) return [];
  const scratch = new Int32Array(size);
  selectTopK(logits, logits.length, size, scratch);
  return Array.from(sortByRank(logits, scratch), (tokenId) => ({
    tokenId,
    logprob: (logits[tokenId] as number) - logNormalizer,
  })).filter(({ logprob }) => logprob > -Infinity);
}

/** The same from sorted logits, as far as there are any. */
export function firstLogprobs(top: TopLogits, logNormalizer: number, count: number): TokenLogprob[] {
  return Array.from(top.values.subarray(0, count), (value, i) => ({
    tokenId: top.ids[i]!,
    logprob: value - logNormalizer,
  })).filter(({ logprob }) => logprob > -Infinity);
}
