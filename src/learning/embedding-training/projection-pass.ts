import { dot } from './contrastive-loss.ts';

/** Parameters of a projection in one vector: A (rank × width), then B (width × rank). */
export interface ProjectionShape {
  readonly width: number;
  readonly rank: number;
}

/** A projected embedding and the values that its gradient needs. */
export interface ProjectedRow {
  readonly input: Float32Array;
  /** f32[rank]: A · input. */
  readonly inner: Float32Array;
  /** Unit length. */
  readonly output: Float32Array;
  /** Length before normalization. */
  readonly length: number;
}

export function projectRow(
  parameters: Float32Array,
  { width, rank }: ProjectionShape,
  input: Float32Array,
): ProjectedRow {
  const inner = new Float32Array(rank);
  for (let r = 0; r < rank; r++) inner[r] = dot(parameters.subarray(r * width, (r + 1) * width), input);
  const output = Float32Array.from(input);
  const start = rank * width;
  for (let i = 0; i < width; i++)
    output[i]! += dot(parameters.subarray(start + i * rank, start + (i + 1) * rank), inner);
  const length = Math.sqrt(dot(output, output));
  for (let i = 0; i < width; i++) output[i]! /= length;
  return { input, inner, output, length };
}

/** Adds the derivative by the parameters to `gradient`; `slope` is the derivative by the normalized output. */
export function projectRowBackward(
  parameters: Float32Array,
  { width, rank }: ProjectionShape,
  { input, inner, output, length }: ProjectedRow,
  slope: Float32Array,
  gradient: Float32Array,
): void {
  // Through the normalization: only the part across the output counts.
  const along = dot(slope, output);
  const start = rank * width;
  const innerSlope = new Float32Array(rank);
  for (let i = 0; i < width; i++) {
    const across = (slope[i]! - along * output[i]!) / length;
    const row = start + i * rank;
    for (let r = 0; r < rank; r++) {
      gradient[row + r]! += across * inner[r]!;
      innerSlope[r]! += across * parameters[row + r]!;
    }
  }
  for (let r = 0; r < rank; r++) {
    for (let i = 0; i < width; i++) gradient[r * width + i]! += innerSlope[r]! * input[i]!;
  }
}
