import type { GatedActivationOp, InputNorm, Offset, WeightMatrix } from '../kernels/contract.ts';
import { type BlockInput, materialize, type Norm, normalizeRows } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import type {
  AttentionWeights,
  FeedForwardWeights,
  HeadNorms,
  OutputWeights,
  PlainFeedForwardWeights,
} from './decoder-weights.ts';
import { addDeltas, addLogitDeltas, hasDelta } from './step-adapters.ts';
import type { Projection } from './weight-loader.ts';

/** Attention parameters of one layer. */
export interface AttentionRule {
  /** Index into the step's ropes; null: heads are not rotated. */
  readonly rope: number | null;
  readonly scale: number;
  /** 0: the whole context. */
  readonly window: number;
  /** 0: off. */
  readonly softcap: number;
}

/** Norms of query and key heads before they are rotated. */
export interface HeadNormRule {
  readonly over: HeadNorms;
  readonly epsilon: number;
}

export const NO_HEAD_NORMS: HeadNormRule = { over: 'none', epsilon: 0 };

/** residual = rows of the table, or the vectors that replace them, which are not scaled. */
export function embedTokens(step: DecoderStep, table: WeightMatrix, scale: number): void {
  const { pack, buffers, numTokens, shape } = step;
  const { residual, hidden, vectorRows } = buffers;
  pack.gatherRows({ table, ids: buffers.ids, out: residual, numRows: numTokens, scale });
  for (const { firstRow, numRows } of step.vectors) {
    const out = residual + firstRow * shape.embeddingDim * 4;
    pack.copyRows({ x: hidden, rows: vectorRows + firstRow * 4, out, numRows, dim: shape.embeddingDim });
  }
}

/** out = projection · input for each projection, with its adapters. */
export function multiplyInput(
  step: DecoderStep,
  input: BlockInput,
  projections: readonly (Projection & { readonly out: Offset })[],
): void {
  const { pack, numTokens } = step;
  const outputs = projections.map((projection) => ({ ...projection, accumulate: false }));
  if (hasDelta(step, ...projections)) {
    const x = materialize(step, input);
    pack.matmul({ x, norm: null, numTokens, outputs });
    for (const output of outputs) addDeltas(step, output, x, output.out);
  } else {
    pack.matmul({ ...input, numTokens, outputs });
  }
}

/** attended = attention over the input; also writes K and V of these rows to their pages. `layer` counts layers with attention. */
export function attend(
  step: DecoderStep,
  layer: number,
  input: BlockInput,
  weights: AttentionWeights,
  rule: AttentionRule,
  headNorms: HeadNormRule = NO_HEAD_NORMS,
): void {
  const { q, k, v } = step.buffers;
  const projections = [
    { ...weights.q, out: q },
    { ...weights.k, out: k },
  ];
  if (weights.v === null) {
    multiplyInput(step, input, projections);
    copyKeysToValues(step, layer);
  } else {
    multiplyInput(step, input, [...projections, { ...weights.v, out: v }]);
  }
  rotateAndStore(step, layer, weights, rule.rope, headNorms);
  attendPages(step, layer, weights.sinks, rule);
}

/** v = k, before norms and rotation. */
function copyKeysToValues({ pack, buffers, numTokens, kvLayers }: DecoderStep, layer: number): void {
  const { numKvHeads, headDim } = kvLayers[layer]!.kv;
  const width = numKvHeads * headDim;
  const [from, to] = [
    { outer: width, inner: 0 },
    { outer: width, inner: 0 },
  ];
  pack.copyBlocks({ x: buffers.k, out: buffers.v, numOuter: numTokens, numInner: 1, width, from, to });
}

/** Like `attend`, over the keys and values that an earlier layer of this step has written: only queries are new. */
export function attendShared(
  step: DecoderStep,
  layer: number,
  input: BlockInput,
  weights: { readonly q: Projection; readonly qNorm: Offset },
  rule: AttentionRule & { readonly rope: number },
  epsilon: number,
): void {
  const { pack, buffers, numTokens, shape } = step;
  const { numHeads } = shape;
  const { headDim } = step.kvLayers[layer]!.kv;
  const { q } = buffers;
  multiplyInput(step, input, [{ ...weights.q, out: q }]);
  pack.rmsNorm({ x: q, weight: weights.qNorm, out: q, numRows: numTokens * numHeads, dim: headDim, epsilon });
  const { pairing, rotaryDim } = step.ropes[rule.rope]!;
  pack.rope({ x: q, cosSin: buffers.cosSin[rule.rope]!, numTokens, numHeads, headDim, rotaryDim, pairing });
  attendPages(step, layer, null, rule);
}

/** attended = attention of the queries over the pages. */
function attendPages(step: DecoderStep, layer: number, sinks: Offset | null, rule: AttentionRule): void {
  const { pack, buffers, numSequences } = step;
  pack.attention({
    ...step.kvLayers[layer]!,
    q: buffers.q,
    out: buffers.attended,
    numHeads: step.shape.numHeads,
    sequences: buffers.sequences,
    numSequences,
    pageTables: buffers.pageTables,
    scale: rule.scale,
    window: rule.window,
    softcap: rule.softcap,
    sinks,
  });
}

/** Norms of heads, rotation, and K and V into their pages. */
function rotateAndStore(
  step: DecoderStep,
  layer: number,
  { qNorm, kNorm, vNorm = null }: AttentionWeights,
  rope: number | null,
  { over, epsilon }: HeadNormRule,
): void {
  const { pack, buffers, numTokens, shape } = step;
  const { numHeads } = shape;
  const place = step.kvLayers[layer]!;
  const { numKvHeads, headDim } = place.kv;
  const { q, k, v, slots } = buffers;
  if (vNorm !== null) {
    pack.rmsNorm({ x: v, weight: vNorm, out: v, numRows: numTokens * numKvHeads, dim: headDim, epsilon });
  }
  const isFused = rope !== null && over === 'each';
  if (!isFused && qNorm !== null && kNorm !== null) {
    for (const [x, weight, heads] of [
      [q, qNorm, numHeads],
      [k, kNorm, numKvHeads],
    ] as const) {
      const rows =
        over === 'each' ? { numRows: numTokens * heads, dim: headDim } : { numRows: numTokens, dim: heads * headDim };
      pack.rmsNorm({ x, weight, out: x, ...rows, epsilon });
    }
  }
  if (rope === null) {
    pack.writeKv({ ...place, k, v, slots, numTokens });
    return;
  }
  const { pairing, rotaryDim } = step.ropes[rope]!;
  const angles = { cosSin: buffers.cosSin[rope]!, rotaryDim, pairing };
  const norms = isFused ? { qNorm, kNorm, epsilon } : { qNorm: null, kNorm: null, epsilon };
  pack.rotateAndStore({ ...place, slots, numTokens, ...angles, q, k, v, numHeads, headDim, ...norms });
}

/** gate = activation(gate · input) * (up · input). */
export function activateGate(
  step: DecoderStep,
  input: BlockInput,
  weights: FeedForwardWeights,
  activation: GatedActivationOp['activation'],
): void {
  const { pack, buffers, numTokens } = step;
  if (hasDelta(step, weights.gate, weights.up)) {
    const { gate, up } = buffers;
    multiplyInput(step, input, [
      { ...weights.gate, out: gate },
      { ...weights.up, out: up },
    ]);
    pack.gatedActivation({ gate, up, out: gate, count: numTokens * weights.gate.weight.numRows, activation });
    return;
  }
  pack.gatedMatmul({ ...input, numTokens, ...weights, out: buffers.gate, scratch: buffers.up, activation });
}

/** gate = gelu(up · input): a feed-forward layer without a gate. */
export function activatePlain(step: DecoderStep, input: BlockInput, { up }: PlainFeedForwardWeights): void {
  const { pack, buffers, shape, numTokens } = step;
  const out = buffers.gate;
  const x = hasDelta(step, up) ? materialize(step, input) : null;
  pack.matmul({ ...(x === null ? input : { x, norm: null }), numTokens, outputs: [{ ...up, out, accumulate: false }] });
  if (x !== null) addDeltas(step, up, x, out);
  pack.gelu({ x: out, count: numTokens * shape.feedForwardDim, formula: 'tanh' });
}

/** residual += projection · x. */
export function addProjected(step: DecoderStep, x: Offset, projection: Projection): void {
  const { pack, buffers, numTokens } = step;
  const outputs = [{ ...projection, out: buffers.residual, accumulate: true }];
  pack.matmul({ x, norm: null, numTokens, outputs });
  addDeltas(step, projection, x, buffers.residual);
}

/** residual += scale * norm(projection · x); a null norm is none. */
export function addAdjusted(
  step: DecoderStep,
  x: Offset,
  projection: Projection,
  norm: Norm | null,
  scale: number,
): void {
  const { pack, buffers, shape, numTokens } = step;
  const { hidden, residual } = buffers;
  const count = numTokens * shape.embeddingDim;
  pack.matmul({ x, norm: null, numTokens, outputs: [{ ...projection, out: hidden, accumulate: false }] });
  addDeltas(step, projection, x, hidden);
  if (norm !== null) normalizeRows(step, norm, hidden, hidden, numTokens);
  if (scale !== 1) pack.scale({ x: hidden, count, factor: scale });
  pack.add({ x: residual, y: hidden, out: residual, count });
}

/** hidden = the requested rows of the residual stream, not normalized. */
export function pickHidden({ pack, buffers, shape, numHiddenRows: numRows }: DecoderStep): void {
  const { residual: x, hiddenRows: rows, hidden: out } = buffers;
  pack.copyRows({ x, rows, out, numRows, dim: shape.embeddingDim });
}

/** Changes of the logits after the last product. */
export interface LogitRule {
  readonly scale: number;
  /** 0: off. */
  readonly softcap: number;
}

/** logits = output · norm(residual) and hidden = norm(residual), only for the requested rows. */
export function writeOutputs(step: DecoderStep, weights: OutputWeights, { scale, softcap }: LogitRule): void {
  const { pack, buffers, shape, numLogitRows: numRows } = step;
  const { residual, hidden, logitRows, picked, logits } = buffers;
  const { norm, projection } = weights;
  if (step.numHiddenRows > 0) {
    pickHidden(step);
    normalizeRows(step, norm, hidden, hidden, step.numHiddenRows);
  }
  if (numRows === 0) return;
  pack.copyRows({ x: residual, rows: logitRows, out: picked, numRows, dim: shape.embeddingDim });
  const outputs = [{ ...projection, out: logits, accumulate: false }];
  const isFused = norm.bias === null && !hasDelta(step, projection);
  const fusedNorm: InputNorm | null = isFused ? { ...norm, scratch: picked } : null;
  if (!isFused) normalizeRows(step, norm, picked, picked, numRows);
  pack.matmul({ x: picked, norm: fusedNorm, numTokens: numRows, outputs });
  addLogitDeltas(step, projection, picked, logits);
  const count = numRows * shape.vocabSize;
  if (scale !== 1) pack.scale({ x: logits, count, factor: scale });
  if (softcap > 0) pack.softcap({ x: logits, count, cap: softcap });
}
