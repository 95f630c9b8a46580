/** One segment as the input matrices read it: they include LayerNorm, so they read unnormalized values. */
export interface InputRow {
  values: ArrayLike<number>;
  /** All later values are zero: parts of a text have no embedding, which is three quarters of a segment. */
  numUsed: number;
  mean: number;
  /** 1 / deviation. */
  scale: number;
}

/** Avoids division by zero for a constant input. */
export const NORM_EPSILON = 1e-5;

export const emptyRow = (): InputRow => ({ values: [], numUsed: 0, mean: 0, scale: 0 });

export function readRow(values: ArrayLike<number>, row: InputRow): void {
  const size = values.length;
  let numUsed = size;
  while (numUsed > 0 && values[numUsed - 1] === 0) numUsed -= 1;
  let sum = 0;
  for (let i = 0; i < numUsed; i++) sum += values[i]!;
  const mean = sum / size;
  let squared = (size - numUsed) * mean * mean;
  for (let i = 0; i < numUsed; i++) squared += (values[i]! - mean) * (values[i]! - mean);
  row.values = values;
  row.numUsed = numUsed;
  row.mean = mean;
  row.scale = 1 / Math.sqrt(squared / size + NORM_EPSILON);
}
