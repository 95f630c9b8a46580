import { RuvLLMError } from '../core/errors.ts';
import type { TopLogits } from '../core/top-logits.ts';
import type { Sampler } from '../sampling/types.ts';

/** Given tokens, each as the LM head saw it when it would have been chosen; plain data. */
export interface ExaminedTokens {
  readonly numTokens: number;
  readonly hiddenDim: number;
  /** f32[numTokens × hiddenDim]: the final hidden states, normalized, that the tokens were predicted from. */
  readonly hidden: Float32Array;
  readonly labels: Int32Array;
  readonly labelLogits: Float32Array;
  /** log Σ exp of all logits of each. */
  readonly logSumExp: Float32Array;
  /** Of each, how many of the next are known; the others of its row are nothing. */
  readonly numKnown: Int32Array;
  readonly maxKnown: number;
  /**
   * int32[numTokens × maxKnown] and f32[numTokens × maxKnown]: the likeliest tokens, best first, then those of the other labels that are
   * not among them: whoever raises a label where it belongs must see where it does not.
   */
  readonly knownIds: Int32Array;
  readonly knownLogits: Float32Array;
}

/** More labels than these are not looked for at every token: a square of a long answer. */
const MAX_LABELS = 64;

/** Chooses what it is told to, and looks at what the model thought of it. */
export interface Examiner extends Sampler {
  /** Before `sample`, of the same row. */
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
      // More may come: as many as the most demanding of the batch asked for.
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
