/** Four runs of a source, and their factors. */
export interface FourRuns {
  readonly starts: Int32Array;
  readonly factors: Float64Array;
}

/** Room for four runs. */
export const createFourRuns = (): FourRuns => ({ starts: new Int32Array(4), factors: new Float64Array(4) });

/** out[at + i] += Σ factors[r] · source[starts[r] + i]. Four at a time: reading and writing `out` costs more than the sums. */
export function addFour(
  out: Float64Array,
  at: number,
  count: number,
  source: Float64Array,
  { starts, factors }: FourRuns,
): void {
  const start0 = starts[0]!;
  const factor0 = factors[0]!;
  const start1 = starts[1]!;
  const factor1 = factors[1]!;
  const start2 = starts[2]!;
  const factor2 = factors[2]!;
  const start3 = starts[3]!;
  const factor3 = factors[3]!;
  for (let i = 0; i < count; i++) {
    out[at + i]! +=
      factor0 * source[start0 + i]! +
      factor1 * source[start1 + i]! +
      factor2 * source[start2 + i]! +
      factor3 * source[start3 + i]!;
  }
}
