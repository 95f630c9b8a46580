import { RuvLLMError } from '../core/errors.ts';

/**
 * Remaining tokens, ids ascending; steps only remove some. A sampler reuses its buffers for every token, so a large
 * vocabulary leaves no garbage.
 */
export interface Candidates {
  /** Number of valid entries below. */
  count: number;
  /** [vocabSize] token ids, ascending. */
  readonly ids: Int32Array;
  /** [vocabSize] logits, all finite after `dropMasked`. */
  readonly values: Float32Array;
  /** [vocabSize] exp(value - max), filled by `fillWeights`. */
  readonly weights: Float64Array;
  /** [vocabSize] sort keys of the current step. */
  readonly keys: Float64Array;
  /** [vocabSize] positions in the arrays above, for selecting and sorting. */
  readonly order: Int32Array;
}

export function createCandidates(vocabSize: number): Candidates {
  return {
    count: vocabSize,
    ids: new Int32Array(vocabSize),
    values: new Float32Array(vocabSize),
    weights: new Float64Array(vocabSize),
    keys: new Float64Array(vocabSize),
    order: new Int32Array(vocabSize),
  };
}

/** Assigns every position its id and removes candidates masked with -Infinity. */
export function dropMasked(candidates: Candidates): void {
  const { ids, values } = candidates;
  let kept = 0;
  for (let i = 0; i < candidates.count; i++) {
    const value = values[i] as number;
    if (value === -Infinity) continue;
    if (!(value < Infinity)) throw new RuvLLMError('bad_logits', `logit of token ${i} became ${value}`);
    ids[kept] = i;
    values[kept++] = value;
  }
  candidates.count = kept;
}

/** Keeps the candidates that `test` accepts, in order. */
export function keepWhere(candidates: Candidates, test: (index: number) => boolean): void {
  const { ids, values } = candidates;
  let kept = 0;
  for (let i = 0; i < candidates.count; i++) {
    if (!test(i)) continue;
    ids[kept] = ids[i] as number;
    values[kept++] = values[i] as number;
  }
  candidates.count = kept;
}

/** Keeps the candidate at `cut` and those that rank above it: higher values, then lower ids. */
export function keepThrough(candidates: Candidates, cut: number): void {
  const threshold = candidates.values[cut] as number;
  // Kept values move forward, never past the current position.
  keepWhere(candidates, (i) => {
    const value = candidates.values[i] as number;
    return value > threshold || (value === threshold && i <= cut);
  });
}

/** The position of the highest value; the lowest id among equals. */
export function argmax(values: Float32Array, count: number): number {
  let best = 0;
  for (let i = 1; i < count; i++) if ((values[i] as number) > (values[best] as number)) best = i;
  return best;
}

/** Fills `weights` with exp((value - max) / temperature) and returns their sum, added by ascending id. */
export function fillWeights(candidates: Candidates, temperature = 1): number {
  const { values, weights, count } = candidates;
  const max = values[argmax(values, count)] as number;
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const weight = Math.exp(((values[i] as number) - max) / temperature);
    weights[i] = weight;
    sum += weight;
  }
  return sum;
}
