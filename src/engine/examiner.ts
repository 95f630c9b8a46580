import { RuvLLMError } from '../core/errors.ts';
import type { TopLogits } from '../core/top-logits.ts';
import type { Sampler } from '../sampling/types.ts';

/** Given tokens, each as the LM head saw it when it would have been chosen; plain data. */
export interface ExaminedTokens {
  readonly numTokens: number;
  readonly hiddenDim: number;
  readonly numTop: number;
  /** f32[numTokens × hiddenDim]: the final hidden states, normalized, that the tokens were predicted from. */
  readonly hidden: Float32Array;
  readonly labels: Int32Array;
  readonly labelLogits: Float32Array;
  /** log Σ exp of all logits of each. */
  readonly logSumExp: Float32Array;
  /** int32[numTokens × numTop] and f32[numTokens × numTop]: the likeliest tokens, best first. */
  readonly topIds: Int32Array;
  readonly topLogits: Float32Array;
}

/** Chooses what it is told to, and looks at what the model thought of it. */
export interface Examiner extends Sampler {
  /** Before `sample`, of the same row. */
  takeHidden(hidden: Float32Array): void;
  result(): ExaminedTokens;
}

export function createExaminer(labels: readonly number[], hiddenDim: number, numTop: number): Examiner {
  const numTokens = labels.length;
  const tokens: ExaminedTokens = {
    numTokens,
    hiddenDim,
    numTop,
    hidden: new Float32Array(numTokens * hiddenDim),
    labels: Int32Array.from(labels),
    labelLogits: new Float32Array(numTokens),
    logSumExp: new Float32Array(numTokens),
    topIds: new Int32Array(numTokens * numTop),
    topLogits: new Float32Array(numTokens * numTop),
  };
  let next = 0;
  return {
    numCandidates: numTop,
    takeHidden: (hidden) => tokens.hidden.set(hidden, next * hiddenDim),
    sample(logits, _history, top) {
      const label = labels[next]!;
      const best = top ?? bestOf(logits, numTop);
      if (best.numBad > 0) throw new RuvLLMError('bad_logits', `${best.numBad} logits are not numbers`);
      tokens.labelLogits[next] = logits[label]!;
      tokens.logSumExp[next] = best.max + Math.log(best.sumExp);
      // More may come: as many as the most demanding of the batch asked for.
      tokens.topIds.set(best.ids.subarray(0, numTop), next * numTop);
      tokens.topLogits.set(best.values.subarray(0, numTop), next * numTop);
      next++;
      return { tokenId: label, logprob: null, top: [] };
    },
    result: () => tokens,
  };
}

/** What the kernels would say of a row. */
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
