import type { InputNorm, Offset } from '../kernels/contract.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { WeightLoader } from './weight-loader.ts';

/** The norms of an architecture: by the root mean square, or by mean and deviation, with or without biases. */
export interface NormRule {
  readonly kind: 'rms' | 'layer' | 'biased-layer';
  readonly epsilon: number;
}

/** A norm of rows. */
export interface Norm {
  /** [embeddingDim] */
  readonly weight: Offset;
  /** [embeddingDim] of a layer norm; null: by the root mean square. */
  readonly bias: Offset | null;
  readonly epsilon: number;
}

/** Rows for the products of a block. */
export interface BlockInput {
  readonly x: Offset;
  /** A norm that the product applies; null: the rows are normalized already. */
  readonly norm: InputNorm | null;
}

/** Reads `name`.weight, and `name`.bias if the rule requires it. */
export function readNorm(loader: WeightLoader, name: string, dim: number, { kind, epsilon }: NormRule): Norm {
  const weight = loader.vector(`${name}.weight`, dim);
  if (kind === 'rms') return { weight, bias: null, epsilon };
  return { weight, bias: kind === 'layer' ? loader.zeros(dim) : loader.vector(`${name}.bias`, dim), epsilon };
}

/** out = norm(x), for rows of the embedding's width. `out` may be `x`. */
export function normalizeRows(step: DecoderStep, norm: Norm, x: Offset, out: Offset, numRows: number): void {
  const { weight, bias, epsilon } = norm;
  const op = { x, weight, out, numRows, dim: step.shape.embeddingDim, epsilon };
  if (bias === null) step.pack.rmsNorm(op);
  else step.pack.layerNorm({ ...op, bias });
}

/** The residual stream as the input of a block. A layer norm is computed here, because products apply only the other one. */
export function normalizedInput(step: DecoderStep, norm: Norm | null): BlockInput {
  const { residual, hidden } = step.buffers;
  if (norm === null) return { x: residual, norm: null };
  if (norm.bias === null) return { x: residual, norm: { ...norm, scratch: hidden } };
  normalizeRows(step, norm, residual, hidden, step.numTokens);
  return { x: hidden, norm: null };
}

/** The same rows without a norm to apply: adapters multiply them, too. */
export function materialize(step: DecoderStep, { x, norm }: BlockInput): Offset {
  if (norm === null) return x;
  const { weight, epsilon } = norm;
  const out = step.buffers.hidden;
  step.pack.rmsNorm({ x, weight, out, numRows: step.numTokens, dim: step.shape.embeddingDim, epsilon });
  return out;
}
