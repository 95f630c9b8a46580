import type { GatedActivationOp, Offset, WeightMatrix } from '../kernels/contract.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { AttentionWeights, FeedForwardWeights, OutputWeights } from './decoder-weights.ts';
import type { Projection } from './weight-loader.ts';

/** How one layer attends. */
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

/** hidden = norm(residual). */
export function normalize(step: DecoderStep, weight: Offset, epsilon: number): void {
  const { residual, hidden } = step.buffers;
  const dim = step.shape.embeddingDim;
  step.pack.rmsNorm({ x: residual, weight, out: hidden, numRows: step.numTokens, dim, epsilon });
}

/** attended = attention over hidden; K and V of these rows are in their pages afterwards. */
export function attend(
  step: DecoderStep,
  layer: number,
  weights: AttentionWeights,
  rule: AttentionRule,
  epsilon: number,
): void {
  const { pack, kv, buffers, numTokens, numSequences } = step;
  const { numHeads, numKvHeads, headDim } = step.shape;
  const { q, k, v } = buffers;
  pack.matmul({
    x: buffers.hidden,
    numTokens,
    outputs: [
      { ...weights.q, out: q, accumulate: false },
      { ...weights.k, out: k, accumulate: false },
      { ...weights.v, out: v, accumulate: false },
    ],
  });
  const rope = step.ropes[rule.rope]!;
  const heads = [
    { x: q, numHeads, norm: weights.qNorm },
    { x: k, numHeads: numKvHeads, norm: weights.kNorm },
  ];
  for (const { x, numHeads, norm } of heads) {
    if (norm !== null) {
      pack.rmsNorm({ x, weight: norm, out: x, numRows: numTokens * numHeads, dim: headDim, epsilon });
    }
    const { pairing, rotaryDim } = rope;
    pack.rope({ x, cosSin: buffers.cosSin[rule.rope]!, numTokens, numHeads, headDim, rotaryDim, pairing });
  }
  pack.writeKv({ kv, layer, k, v, slots: buffers.slots, numTokens });
  pack.attention({
    kv,
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

/** gate = activation(gate · hidden) * (up · hidden). */
export function activateGate(
  { pack, buffers, shape, numTokens }: DecoderStep,
  weights: FeedForwardWeights,
  activation: GatedActivationOp['activation'],
): void {
  const { hidden, gate, up } = buffers;
  pack.matmul({
    x: hidden,
    numTokens,
    outputs: [
      { ...weights.gate, out: gate, accumulate: false },
      { ...weights.up, out: up, accumulate: false },
    ],
  });
  pack.gatedActivation({ gate, up, out: gate, count: numTokens * shape.feedForwardDim, activation });
}

/** residual += projection · x. */
export function addProjected({ pack, buffers, numTokens }: DecoderStep, x: Offset, projection: Projection): void {
  pack.matmul({ x, numTokens, outputs: [{ ...projection, out: buffers.residual, accumulate: true }] });
}

/** residual += norm(projection · x). */
export function addNormalized(
  { pack, buffers, shape, numTokens }: DecoderStep,
  x: Offset,
  projection: Projection,
  weight: Offset,
  epsilon: number,
): void {
  const { hidden, residual } = buffers;
  const dim = shape.embeddingDim;
  pack.matmul({ x, numTokens, outputs: [{ ...projection, out: hidden, accumulate: false }] });
  pack.rmsNorm({ x: hidden, weight, out: hidden, numRows: numTokens, dim, epsilon });
  pack.add({ x: residual, y: hidden, out: residual, count: numTokens * dim });
}

/** logits = output · norm(residual), of the wanted rows only. */
export function writeLogits(step: DecoderStep, weights: OutputWeights, epsilon: number, softcap: number): void {
  const { pack, buffers, shape, numLogitRows: numRows } = step;
  const { residual, logitRows, picked, logits } = buffers;
  const dim = shape.embeddingDim;
  if (numRows === 0) return;
  pack.copyRows({ x: residual, rows: logitRows, out: picked, numRows, dim });
  pack.rmsNorm({ x: picked, weight: weights.norm, out: picked, numRows, dim, epsilon });
  pack.matmul({ x: picked, numTokens: numRows, outputs: [{ ...weights.projection, out: logits, accumulate: false }] });
  if (softcap > 0) pack.softcap({ x: logits, count: numRows * shape.vocabSize, cap: softcap });
}
