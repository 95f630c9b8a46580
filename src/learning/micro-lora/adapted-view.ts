import { type MicroLoraConfig, NUM_TOP, type TokenSample } from './types.ts';

/** A token of an answer as a low-rank addition to the LM head changes it. */
export interface AdaptedToken {
  /** log p of the label. */
  readonly logp: number;
  /** How far the label's logit is above that of every other token; negative: another token would be said. */
  readonly margin: number;
  /** Kullback–Leibler divergence from the model without the adapter, over the known tokens; the others count as one. */
  readonly divergence: number;
}

/** Computes tokens under a low-rank addition to the LM head: A (rank × hiddenDim), then B (vocabSize × rank). */
export function createAdaptedView({ hiddenDim, vocabSize, rank, alpha }: MicroLoraConfig, parameters: Float32Array) {
  const bStart = rank * hiddenDim;
  const u = new Float64Array(rank);
  /** Longest row of B: bounds the change of tokens whose logits are unknown. */
  let longestRow = 0;
  for (let id = 0; id < vocabSize; id++) {
    let squares = 0;
    for (let r = 0; r < rank; r++) squares += parameters[bStart + id * rank + r]! ** 2;
    if (squares > longestRow) longestRow = squares;
  }
  longestRow = Math.sqrt(longestRow);

  const added = (id: number): number => {
    let sum = 0;
    for (let r = 0; r < rank; r++) sum += parameters[bStart + id * rank + r]! * u[r]!;
    return sum;
  };

  /** The highest logit that a token outside `ids` may have: without the adapter it is at most `floor`. */
  function highestUnknown(floor: number, known: ArrayLike<number>, best: number): number {
    const bound = floor + longestRow * Math.hypot(...u);
    if (bound < best) return bound;
    const ids = new Set(Array.from(known));
    let most = -Infinity;
    for (let id = 0; id < vocabSize; id++) if (!ids.has(id)) most = Math.max(most, added(id));
    return floor + most;
  }

  function measure({ hidden, label, ids, logits, labelLogit = null, logSumExp = null }: TokenSample) {
    for (let r = 0; r < rank; r++) {
      let sum = 0;
      for (let i = 0; i < hiddenDim; i++) sum += parameters[r * hiddenDim + i]! * hidden[i]!;
      u[r] = (sum * alpha) / rank;
    }
    // Tokens without a logit change only through the normalization.
    let own = labelLogit ?? 0;
    let [known, moved, shift, hasLabel, other] = [0, 0, 0, false, -Infinity];
    const top = logits[0] ?? own;
    const weigh = (id: number, logit: number): void => {
      const change = added(id);
      const weight = Math.exp(logit - top);
      known += weight;
      moved += weight * Math.exp(change);
      shift += weight * change;
      if (id !== label) other = Math.max(other, logit + change);
    };
    for (let i = 0; i < ids.length; i++) {
      if (ids[i] === label) [own, hasLabel] = [logits[i]!, true];
      weigh(ids[i]!, logits[i]!);
    }
    if (!hasLabel) weigh(label, own);
    const rest = logSumExp === null ? 0 : Math.max(0, Math.exp(logSumExp - top) - known);
    const said = own + added(label);
    const logp = said - (top + Math.log(moved + rest));
    const divergence = Math.max(0, Math.log((moved + rest) / (known + rest)) - shift / (known + rest));
    return { logp, divergence, said, other, hasUnknown: rest > 0 };
  }

  return {
    /** log p of the label. */
    logp: (sample: TokenSample): number => measure(sample).logp,
    token(sample: TokenSample): AdaptedToken {
      const { logp, divergence, said, other, hasUnknown } = measure(sample);
      const { ids, logits } = sample;
      const floor = logits[Math.min(NUM_TOP, logits.length) - 1] ?? said;
      const best = hasUnknown ? Math.max(other, highestUnknown(floor, ids, other)) : other;
      return { logp, margin: said - best, divergence };
    },
  };
}
