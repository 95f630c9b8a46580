import type { Offset } from '../../kernels/contract.ts';
import { attentionBackward } from './attention-backward.ts';
import { addRmsNormBackward, gateBackward, ropeBackward } from './backward-ops.ts';
import { lowRankBackward } from './low-rank-backward.ts';
import { targetShape } from '../../adapters/target-shapes.ts';
import type { TrainingStep } from './training-step.ts';
import type { LayerTarget } from './training-weights.ts';

/** Back-propagates from the residual stream to the lowest adapted matrix and adds to `gradient`. */
export async function passBackward(step: TrainingStep, firstLayer: number, gradient: Float32Array): Promise<void> {
  for (let layer = step.shape.numLayers - 1; layer >= firstLayer; layer--) {
    if (await feedForwardBackward(step, layer, gradient)) await attentionPartBackward(step, layer, gradient);
  }
}

/** A product y = W·x of a layer; several share their x. */
interface Product {
  readonly target: LayerTarget;
  readonly dY: Offset;
}

/** Adds the gradients of the factors and writes dX if something below is adapted; returns whether it is. */
async function productsBackward(
  step: TrainingStep,
  layer: number,
  x: Offset,
  products: readonly Product[],
  dX: Offset,
  gradient: Float32Array,
): Promise<boolean> {
  const { pack, shape, buffers, layout, numTokens } = step;
  const { arena } = pack;
  const { projections } = step.weights.layers[layer]!;
  const crosses = projections[products[0]!.target].transposed !== null;
  if (crosses) {
    for (const [i, { target, dY }] of products.entries()) {
      const outputs = [{ weight: projections[target].transposed!, bias: null, out: dX, accumulate: i > 0 }];
      pack.matmul({ x: dY, numTokens, outputs });
    }
    await pack.sync();
  }
  for (const { target, dY } of products) {
    const matrix = step.adapted(target, layer);
    if (matrix === undefined) continue;
    const { aStart, bStart } = matrix;
    const { numRows, numCols } = targetShape(target, shape, layer);
    const end = bStart + numRows * layout.rank;
    lowRankBackward({
      x: arena.f32(x, numTokens * numCols),
      dY: arena.f32(dY, numTokens * numRows),
      a: arena.f32(buffers.parameters + aStart * 4, bStart - aStart),
      b: arena.f32(buffers.parameters + bStart * 4, end - bStart),
      dA: gradient.subarray(aStart, bStart),
      dB: gradient.subarray(bStart, end),
      dX: crosses ? arena.f32(dX, numTokens * numCols) : null,
      numTokens,
      numCols,
      numRows,
      rank: layout.rank,
      scale: layout.scale,
    });
  }
  return crosses;
}

function normBackward(step: TrainingStep, x: Offset, weight: Offset): void {
  const { pack, shape, buffers, epsilon, numTokens } = step;
  const { arena } = pack;
  const dim = shape.embeddingDim;
  const [dY, dX] = [buffers.gradients.hidden, buffers.gradients.residual];
  const rows = (offset: Offset): Float32Array => arena.f32(offset, numTokens * dim);
  addRmsNormBackward(rows(x), arena.f32(weight, dim), rows(dY), rows(dX), { numRows: numTokens, epsilon });
}

/** Turns the residual's gradient into that of the sum after attention; false: nothing below is adapted. */
async function feedForwardBackward(step: TrainingStep, layer: number, gradient: Float32Array): Promise<boolean> {
  const { pack, shape, buffers, numTokens } = step;
  const own = buffers.layers[layer]!;
  const { residual, hidden, gate, up, activated } = buffers.gradients;
  const down = [{ target: 'ffn_down', dY: residual }] as const;
  if (!(await productsBackward(step, layer, own.activated, down, activated, gradient))) return false;
  const wide = (offset: Offset): Float32Array => pack.arena.f32(offset, numTokens * shape.feedForwardDim);
  gateBackward(wide(own.gate), wide(own.up), wide(activated), wide(gate), wide(up));
  const products = [
    { target: 'ffn_gate', dY: gate },
    { target: 'ffn_up', dY: up },
  ] as const;
  if (!(await productsBackward(step, layer, own.feedForwardInput, products, hidden, gradient))) return false;
  normBackward(step, own.middle, step.weights.layers[layer]!.feedForwardNorm);
  return true;
}

/** Turns the residual's gradient into that of the layer's input if something below is adapted. */
async function attentionPartBackward(step: TrainingStep, layer: number, gradient: Float32Array): Promise<void> {
  const { buffers } = step;
  const own = buffers.layers[layer]!;
  const { residual, hidden, attended, q, k, v } = buffers.gradients;
  const output = [{ target: 'attn_output', dY: residual }] as const;
  if (!(await productsBackward(step, layer, own.attended, output, attended, gradient))) return;
  headsBackward(step, layer);
  const products = [
    { target: 'attn_q', dY: q },
    { target: 'attn_k', dY: k },
    { target: 'attn_v', dY: v },
  ] as const;
  if (!(await productsBackward(step, layer, own.attentionInput, products, hidden, gradient))) return;
  normBackward(step, own.input, step.weights.layers[layer]!.attentionNorm);
}

/** Gradients of q, k and v before rotation and norms, from that of the attended values. */
function headsBackward(step: TrainingStep, layer: number): void {
  const { pack, shape, buffers, rope, epsilon, numTokens } = step;
  const { arena } = pack;
  const { numHeads, numKvHeads, headDim } = shape;
  const own = buffers.layers[layer]!;
  const { attended, q, k, v } = buffers.gradients;
  const ofQ = (offset: Offset): Float32Array => arena.f32(offset, numTokens * numHeads * headDim);
  const ofKv = (offset: Offset): Float32Array => arena.f32(offset, numTokens * numKvHeads * headDim);
  attentionBackward({
    q: ofQ(own.q),
    k: ofKv(own.k),
    v: ofKv(own.v),
    dOut: ofQ(attended),
    dQ: ofQ(q),
    dK: ofKv(k),
    dV: ofKv(v),
    numTokens,
    numHeads,
    numKvHeads,
    headDim,
    scale: 1 / Math.sqrt(headDim),
    window: step.window,
  });
  const cosSin = arena.f32(buffers.cosSin, numTokens * rope.rotaryDim);
  const { qNorm, kNorm } = step.weights.layers[layer]!;
  for (const { x, raw, weight, count } of [
    { x: ofQ(q), raw: ofQ(own.rawQ), weight: qNorm, count: numHeads },
    { x: ofKv(k), raw: ofKv(own.rawK), weight: kNorm, count: numKvHeads },
  ]) {
    ropeBackward(x, cosSin, { numTokens, numHeads: count, headDim, ...rope });
    if (weight === null) continue;
    const dY = x.slice();
    x.fill(0);
    addRmsNormBackward(raw, arena.f32(weight, headDim), dY, x, { numRows: numTokens * count, epsilon });
  }
}
