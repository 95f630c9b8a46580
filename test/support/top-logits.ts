import type { TopLogits } from '../../src/core/top-logits.ts';

/** The top k of a row by sorting; `sumFactor` changes the sum as kernels may. */
export function topOfRow(logits: Float32Array, k: number, sumFactor = 1): TopLogits {
  const ids = Int32Array.from(logits, (_, id) => id)
    .sort((a, b) => logits[b]! - logits[a]! || a - b)
    .slice(0, k);
  const max = logits[ids[0]!]!;
  const sumExp = logits.reduce((sum, value) => sum + Math.exp(value - max), 0) * sumFactor;
  const numBad = logits.filter((value) => !(value < Infinity)).length;
  return { ids, values: Float32Array.from(ids, (id) => logits[id]!), max, sumExp, numBad };
}
