import type { Offset } from '../../kernels/contract.ts';
import { attentionBackward } from './attention-backward.ts';
import { addRmsNormBackward, gateBackward, ropeBackward } from './backward-ops.ts';
import { lowRankBackward } from './low-rank-backward.ts';
import { targetShape } from '../../adapters/target-shapes.ts';
import type { TrainingStep } from './training-step.ts';
import type { LayerTarget } from './training-weights.ts';

/**
 * Back-propagates from the residual stream to the lowest adapted matrix and adds to `gradient`. In the last layer rows before
 * `firstRow` of the residual have no gradient: only their K and V reach the loss.
 */
export async function passBackward(
  step: TrainingStep,
  firstLayer: number,
  firstRow: number,
  gradient: Float32Array,
): Promise<void> {
  const last = step.shape.numLayers - 1;
  for (let layer = last; layer >= firstLayer; layer--) {
    const first = layer === last ? firstRow : 0;
    if (!(await feedForwardBackward(step, layer, first, gradient))) return;
    await attentionPartBackward(step, layer, first, gradient);
  }
}

/** A product y = W·x of a layer; several share their x. */
interface Product {
  readonly target: LayerTarget;
  readonly dY: Offset;
}

/** Adds the gradients of the factors and writes dX, from `firstRow` on, if something below is adapted; returns whether it is. */
async function productsBackward(
  step: TrainingStep,
  layer: number,
  firstRow: number,
  { x: allX, products: all, dX: allDx }: { readonly x: Offset; readonly products: readonly Product[]; readonly dX: Offset }, // prettier-ignore
  gradient: Float32Array,
): Promise<boolean> {
  const { pack, shape, buffers, layout } = step;
  const { arena } = pack;
  const { projections } = step.weights.layers[layer]!;
  const numTokens = step.numTokens - firstRow;
  const shapeOf = (target: LayerTarget) => targetShape(target, shape, layer);
  const skipped = firstRow * shapeOf(all[0]!.target).numCols * 4;
  const [x, dX] = [allX + skipped, allDx + skipped];
  const products = all.map(({ target, dY }) => ({ target, dY: dY + firstRow * shapeOf(target).numRows * 4 }));
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
    const { numRows, numCols } = shapeOf(target);
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

function normBackward(step: TrainingStep, firstRow: number, x: Offset, weight: Offset): void {
  const { pack, shape, buffers, epsilon } = step;
  const { arena } = pack;
  const dim = shape.embeddingDim;
  const numRows = step.numTokens - firstRow;
  const rows = (offset: Offset): Float32Array => arena.f32(offset + firstRow * dim * 4, numRows * dim);
  const { hidden, residual } = buffers.gradients;
  addRmsNormBackward(rows(x), arena.f32(weight, dim), rows(hidden), rows(residual), { numRows, epsilon });
}

/** Turns the residual's gradient into that of the sum after attention; false: nothing below is adapted. */
async function feedForwardBackward(
  step: TrainingStep,
  layer: number,
  firstRow: number,
  gradient: Float32Array,
): Promise<boolean> {
  const { pack, shape, buffers, numTokens } = step;
  const own = buffers.layers[layer]!;
  const { residual, hidden, gate, up, activated } = buffers.gradients;
  const down = { x: own.activated, products: [{ target: 'ffn_down', dY: residual }], dX: activated } as const;
  if (!(await productsBackward(step, layer, firstRow, down, gradient))) return false;
  const { feedForwardDim } = shape;
  const wide = (offset: Offset): Float32Array =>
    pack.arena.f32(offset + firstRow * feedForwardDim * 4, (numTokens - firstRow) * feedForwardDim);
  gateBackward(wide(own.gate), wide(own.up), wide(activated), wide(gate), wide(up));
  const products = [
    { target: 'ffn_gate', dY: gate },
    { target: 'ffn_up', dY: up },
  ] as const;
  const both = { x: own.feedForwardInput, products, dX: hidden };
  if (!(await productsBackward(step, layer, firstRow, both, gradient))) return false;
  normBackward(step, firstRow, own.middle, step.weights.layers[layer]!.feedForwardNorm);
  return true;
}

/** Turns the residual's gradient into that of the layer's input if something below is adapted. */
async function attentionPartBackward(
  step: TrainingStep,
  layer: number,
  firstRow: number,
  gradient: Float32Array,
): Promise<void> {
  const { buffers } = step;
  const own = buffers.layers[layer]!;
  const { residual, hidden, attended, q, k, v } = buffers.gradients;
  const output = { x: own.attended, products: [{ target: 'attn_output', dY: residual }], dX: attended } as const;
  if (!(await productsBackward(step, layer, firstRow, output, gradient))) return;
  headsBackward(step, layer, firstRow);
  const products = [
    { target: 'attn_q', dY: q },
    { target: 'attn_k', dY: k },
    { target: 'attn_v', dY: v },
  ] as const;
  // All rows: those before the first have K and V.
  if (!(await productsBackward(step, layer, 0, { x: own.attentionInput, products, dX: hidden }, gradient))) return;
  normBackward(step, 0, own.input, step.weights.layers[layer]!.attentionNorm);
}

/** Gradients of q, k and v before rotation and norms, from that of the attended values. */
function headsBackward(step: TrainingStep, layer: number, firstRow: number): void {
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
    firstRow,
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
