import type { Offset } from '../../kernels/contract.ts';
import { addLowRank, type TrainingStep } from './training-step.ts';
import type { LayerTarget } from './training-weights.ts';

/** Records the layers from `firstLayer`, whose input is given, to `residual`. */
export function recordForward(step: TrainingStep, firstLayer: number): void {
  const { layers } = step.buffers;
  for (let layer = firstLayer; layer < layers.length; layer++) {
    recordAttention(step, layer);
    recordFeedForward(step, layer, layers[layer + 1]?.input ?? step.buffers.residual);
  }
}

/** The products of one input with some matrices of a layer. */
function project(step: TrainingStep, layer: number, x: Offset, outputs: readonly [LayerTarget, Offset][]): void {
  const { projections } = step.weights.layers[layer]!;
  step.pack.matmul({
    x,
    numTokens: step.numTokens,
    outputs: outputs.map(([target, out]) => ({
      weight: projections[target].weight,
      bias: projections[target].bias,
      out,
      accumulate: false,
    })),
  });
  for (const [target, out] of outputs) addLowRank(step, step.adapted(target, layer), x, out, step.numTokens);
}

function normalize({ pack, shape, epsilon, numTokens }: TrainingStep, x: Offset, weight: Offset, out: Offset): void {
  pack.rmsNorm({ x, weight, out, numRows: numTokens, dim: shape.embeddingDim, epsilon });
}

function recordAttention(step: TrainingStep, layer: number): void {
  const { pack, shape, rope, epsilon, numTokens, buffers } = step;
  const { numHeads, numKvHeads, headDim } = shape;
  const own = buffers.layers[layer]!;
  const { attentionNorm, qNorm, kNorm } = step.weights.layers[layer]!;
  normalize(step, own.input, attentionNorm, own.attentionInput);
  project(step, layer, own.attentionInput, [
    ['attn_q', own.rawQ],
    ['attn_k', own.rawK],
    ['attn_v', own.v],
  ]);
  const { cosSin, kv, slots } = buffers;
  for (const { raw, x, weight, count } of [
    { raw: own.rawQ, x: own.q, weight: qNorm, count: numHeads },
    { raw: own.rawK, x: own.k, weight: kNorm, count: numKvHeads },
  ]) {
    if (weight !== null) {
      pack.rmsNorm({ x: raw, weight, out: x, numRows: numTokens * count, dim: headDim, epsilon });
    }
    const { pairing, rotaryDim } = rope;
    pack.rope({ x, cosSin, numTokens, numHeads: count, headDim, rotaryDim, pairing });
  }
  pack.writeKv({ kv, layer: 0, k: own.k, v: own.v, slots, numTokens });
  pack.attention({
    kv,
    layer: 0,
    q: own.q,
    out: own.attended,
    numHeads,
    sequences: buffers.sequence,
    numSequences: 1,
    pageTables: buffers.pageTable,
    scale: 1 / Math.sqrt(headDim),
    window: step.window,
    softcap: 0,
  });
  project(step, layer, own.attended, [['attn_output', own.middle]]);
  pack.add({ x: own.input, y: own.middle, out: own.middle, count: numTokens * shape.embeddingDim });
}

function recordFeedForward(step: TrainingStep, layer: number, out: Offset): void {
  const { pack, shape, numTokens } = step;
  const own = step.buffers.layers[layer]!;
  normalize(step, own.middle, step.weights.layers[layer]!.feedForwardNorm, own.feedForwardInput);
  project(step, layer, own.feedForwardInput, [
    ['ffn_gate', own.gate],
    ['ffn_up', own.up],
  ]);
  const count = numTokens * shape.feedForwardDim;
  pack.gatedActivation({ gate: own.gate, up: own.up, out: own.activated, count, activation: 'silu' });
  project(step, layer, own.activated, [['ffn_down', out]]);
  pack.add({ x: own.middle, y: out, out, count: numTokens * shape.embeddingDim });
}
