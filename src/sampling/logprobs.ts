import { argmax } from './candidates.ts';
import { selectTopK, sortByRank } from './select.ts';
import type { TokenLogprob } from './types.ts';

/** log of the sum of exp(logits): what turns a logit into a log-probability. */
export function logSumExp(logits: Float32Array): number {
  const max = logits[argmax(logits, logits.length)] as number;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp((logits[i] as number) - max);
  return max + Math.log(sum);
}

/** The `count` likeliest tokens, best first; `scratch` holds at least as many entries. */
export function topLogprobs(
  logits: Float32Array,
  logNormalizer: number,
  count: number,
  scratch: Int32Array,
): TokenLogprob[] {
  const size = Math.min(count, logits.length);
  if (size === 0) return [];
  selectTopK(logits, logits.length, size, scratch);
  return Array.from(sortByRank(logits, scratch.subarray(0, size)), (tokenId) => ({
    tokenId,
    logprob: (logits[tokenId] as number) - logNormalizer,
  })).filter(({ logprob }) => logprob > -Infinity);
}
