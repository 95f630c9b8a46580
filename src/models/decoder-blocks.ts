import type { GatedActivationOp, InputNorm, Offset, WeightMatrix } from '../kernels/contract.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { AttentionWeights, FeedForwardWeights, OutputWeights } from './decoder-weights.ts';
import { addDeltas, addLogitDeltas, hasDelta } from './step-adapters.ts';
import type { Projection } from './weight-loader.ts';

/** Attention parameters of one layer. */
export interface AttentionRule {
  /** Index into the step's ropes. */
  readonly rope: number;
  readonly scale: number;
  /** 0: the whole context. */
  readonly window: number;
  /** 0: off. */
  readonly softcap: number;
}

/** residual = rows of the table. */
export function embedTokens({ pack, buffers, numTokens }: DecoderStep, table: WeightMatrix, scale: number): void {
  pack.gatherRows({ table, ids: buffers.ids, out: buffers.residual, numRows: numTokens, scale });
}

const inputNorm = ({ buffers }: DecoderStep, weight: Offset, epsilon: number): InputNorm => ({
  weight,
  epsilon,
  scratch: buffers.hidden,
});

/** hidden = norm(residual), for several uses. */
function normalizeInput({ pack, buffers, shape, numTokens }: DecoderStep, weight: Offset, epsilon: number): Offset {
  const { residual: x, hidden: out } = buffers;
  pack.rmsNorm({ x, weight, out, numRows: numTokens, dim: shape.embeddingDim, epsilon });
  return out;
}

/** attended = attention over norm(residual); also writes K and V of these rows to their pages. */
export function attend(
  step: DecoderStep,
  layer: number,
  norm: Offset,
  weights: AttentionWeights,
  rule: AttentionRule,
  epsilon: number,
): void {
  const { pack, kv, packed, buffers, numTokens, numSequences } = step;
  const { numHeads, headDim } = step.shape;
  const { q, k, v, slots } = buffers;
  const outputs = [
    { ...weights.q, out: q, accumulate: false },
    { ...weights.k, out: k, accumulate: false },
    { ...weights.v, out: v, accumulate: false },
  ];
  if (hasDelta(step, weights.q, weights.k, weights.v)) {
    const x = normalizeInput(step, norm, epsilon);
    pack.matmul({ x, norm: null, numTokens, outputs });
    for (const output of outputs) addDeltas(step, output, x, output.out);
  } else {
    pack.matmul({ x: buffers.residual, norm: inputNorm(step, norm, epsilon), numTokens, outputs });
  }
  const { pairing, rotaryDim } = step.ropes[rule.rope]!;
  const { qNorm, kNorm } = weights;
  const angles = { cosSin: buffers.cosSin[rule.rope]!, rotaryDim, pairing };
  const heads = { q, k, v, numHeads, headDim, qNorm, kNorm, epsilon };
  pack.rotateAndStore({ kv, layer, slots, numTokens, ...angles, ...heads });
  pack.attention({
    kv,
    packed,
    layer,
    q,
    out: buffers.attended,
    numHeads,
    sequences: buffers.sequences,
    numSequences,
    pageTables: buffers.pageTables,
    scale: rule.scale,
    window: rule.window,
    softcap: rule.softcap,
  });
}

/** gate = activation(gate · norm(residual)) * (up · norm(residual)). */
export function activateGate(
  step: DecoderStep,
  norm: Offset,
  weights: FeedForwardWeights,
  activation: GatedActivationOp['activation'],
  epsilon: number,
): void {
  const { pack, buffers, shape, numTokens } = step;
  if (hasDelta(step, weights.gate, weights.up)) {
    const { gate, up } = buffers;
    const x = normalizeInput(step, norm, epsilon);
    const outputs = [
      { ...weights.gate, out: gate, accumulate: false },
      { ...weights.up, out: up, accumulate: false },
    ];
    pack.matmul({ x, norm: null, numTokens, outputs });
    for (const output of outputs) addDeltas(step, output, x, output.out);
    pack.gatedActivation({ gate, up, out: gate, count: numTokens * shape.feedForwardDim, activation });
    return;
  }
  pack.gatedMatmul({
    x: buffers.residual,
    numTokens,
    norm: inputNorm(step, norm, epsilon),
    ...weights,
    out: buffers.gate,
    scratch: buffers.up,
    activation,
  });
}

/** residual += projection · x. */
export function addProjected(step: DecoderStep, x: Offset, projection: Projection): void {
  const { pack, buffers, numTokens } = step;
  const outputs = [{ ...projection, out: buffers.residual, accumulate: true }];
  pack.matmul({ x, norm: null, numTokens, outputs });
  addDeltas(step, projection, x, buffers.residual);
}

/** residual += norm(projection · x). */
export function addNormalized(
  step: DecoderStep,
  x: Offset,
  projection: Projection,
  weight: Offset,
  epsilon: number,
): void {
  const { pack, buffers, shape, numTokens } = step;
  const { hidden, residual } = buffers;
  const dim = shape.embeddingDim;
  pack.matmul({ x, norm: null, numTokens, outputs: [{ ...projection, out: hidden, accumulate: false }] });
  addDeltas(step, projection, x, hidden);
  pack.rmsNorm({ x: hidden, weight, out: hidden, numRows: numTokens, dim, epsilon });
  pack.add({ x: residual, y: hidden, out: residual, count: numTokens * dim });
}

/** hidden = the requested rows of the residual stream, not normalized. */
export function pickHidden({ pack, buffers, shape, numHiddenRows: numRows }: DecoderStep): void {
  const { residual: x, hiddenRows: rows, hidden: out } = buffers;
  pack.copyRows({ x, rows, out, numRows, dim: shape.embeddingDim });
}

/** logits = output · norm(residual) and hidden = norm(residual), only for the requested rows. */
export function writeOutputs(step: DecoderStep, weights: OutputWeights, epsilon: number, softcap: number): void {
  const { pack, buffers, shape, numLogitRows: numRows } = step;
  const { residual, logitRows, picked, logits } = buffers;
  const dim = shape.embeddingDim;
  if (step.numHiddenRows > 0) {
    const { hidden } = buffers;
    pickHidden(step);
    pack.rmsNorm({ x: hidden, weight: weights.norm, out: hidden, numRows: step.numHiddenRows, dim, epsilon });
  }
  if (numRows === 0) return;
  pack.copyRows({ x: residual, rows: logitRows, out: picked, numRows, dim });
  const outputs = [{ ...weights.projection, out: logits, accumulate: false }];
  if (hasDelta(step, weights.projection)) {
    pack.rmsNorm({ x: picked, weight: weights.norm, out: picked, numRows, dim, epsilon });
    pack.matmul({ x: picked, norm: null, numTokens: numRows, outputs });
    addLogitDeltas(step, weights.projection, picked, logits);
  } else {
    const norm: InputNorm = { weight: weights.norm, epsilon, scratch: picked };
    pack.matmul({ x: picked, norm, numTokens: numRows, outputs });
  }
  if (softcap > 0) pack.softcap({ x: logits, count: numRows * shape.vocabSize, cap: softcap });
}
