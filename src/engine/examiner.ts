import { RuvLLMError } from '../core/errors.ts';
import type { TopLogits } from '../core/top-logits.ts';
import type { Sampler } from '../sampling/types.ts';

/** Given tokens and the LM head's input and output for each, as if each had been sampled; plain data. */
export interface ExaminedTokens {
  readonly numTokens: number;
  readonly hiddenDim: number;
  /** f32[numTokens × hiddenDim]: the normalized final hidden states that predicted the tokens. */
  readonly hidden: Float32Array;
  readonly labels: Int32Array;
  readonly labelLogits: Float32Array;
  /** log Σ exp over all logits, per token. */
  readonly logSumExp: Float32Array;
  /** Per token, how many entries of its row below are valid. */
  readonly numKnown: Int32Array;
  readonly maxKnown: number;
  /**
   * int32 and f32[numTokens × maxKnown]: the likeliest tokens, best first, then the other labels, because training must
   * also see where a label does not belong.
   */
  readonly knownIds: Int32Array;
  readonly knownLogits: Float32Array;
}

/** With more labels than this, the other labels are skipped: their number would grow with the square of the answer. */
const MAX_LABELS = 64;

/** A sampler that chooses the given tokens and records the model's view of them. */
export interface Examiner extends Sampler {
  /** Call before `sample`, with the same row. */
  takeHidden(hidden: Float32Array): void;
  result(): ExaminedTokens;
}

export function createExaminer(labels: readonly number[], hiddenDim: number, numTop: number): Examiner {
  const numTokens = labels.length;
  const others = [...new Set(labels)].slice(0, MAX_LABELS);
  const maxKnown = numTop + others.length;
  const tokens: ExaminedTokens = {
    numTokens,
    hiddenDim,
    hidden: new Float32Array(numTokens * hiddenDim),
    labels: Int32Array.from(labels),
    labelLogits: new Float32Array(numTokens),
    logSumExp: new Float32Array(numTokens),
    numKnown: new Int32Array(numTokens),
    maxKnown,
    knownIds: new Int32Array(numTokens * maxKnown),
    knownLogits: new Float32Array(numTokens * maxKnown),
  };
  let next = 0;
  return {
    numCandidates: numTop,
    takeHidden: (hidden) => tokens.hidden.set(hidden, next * hiddenDim),
    sample(logits, _history, given) {
      const label = labels[next]!;
      const best = given ?? bestOf(logits, numTop);
      if (best.numBad > 0) throw new RuvLLMError('bad_logits', `${best.numBad} logits are not numbers`);
      tokens.labelLogits[next] = logits[label]!;
      tokens.logSumExp[next] = best.max + Math.log(best.sumExp);
      // The batch may supply more than were requested here.
      const top = best.ids.subarray(0, numTop);
      const known = [...top, ...others.filter((id) => !top.includes(id))];
      tokens.numKnown[next] = known.length;
      tokens.knownIds.set(known, next * maxKnown);
      tokens.knownLogits.set(
        known.map((id) => logits[id]!),
        next * maxKnown,
      );
      next++;
      return { tokenId: label, logprob: null, top: [] };
    },
    result: () => tokens,
  };
}

/** The top logits of a full row, as kernels would return them. */
function bestOf(logits: Float32Array, count: number): TopLogits {
  const ids = Int32Array.from(logits.keys())
    .sort((a, b) => logits[b]! - logits[a]! || a - b)
    .subarray(0, count);
  const max = logits[ids[0]!]!;
  let [sumExp, numBad] = [0, 0];
  for (const value of logits) {
    if (Number.isNaN(value) || value === Infinity) numBad++;
    sumExp += Math.exp(value - max);
  }
  return { ids, values: Float32Array.from(ids, (id) => logits[id]!), max, sumExp, numBad };
}
