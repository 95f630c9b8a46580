import {
  type AddOp,
  type CopyBlocksOp,
  type CopyRowsOp,
  type GatedActivationOp,
  type GeluOp,
  type LayerNormOp,
  type MatchLengthsOp,
  type MixStreamsOp,
  type RmsNormOp,
  type ScaleOp,
  type SoftcapOp,
  type SparsifyOp,
  TOP_STATS,
  topScratch,
  type TopLogitsOp,
} from '../contract.ts';
import { checkTopLogits } from '../op-limits.ts';
import { spansOf, type Visit, type Visitor, visitRows } from './visit.ts';

export const rmsNorm: Visitor<RmsNormOp> = (op, visit) => {
  const { x, weight, out, numRows, dim } = op;
  return {
    ...op,
    x: visit.read(x, numRows * dim * 4),
    weight: visit.read(weight, dim * 4),
    out: visit.write(out, numRows * dim * 4),
  };
};

export const layerNorm: Visitor<LayerNormOp> = (op, visit) => ({
  ...op,
  ...rmsNorm(op, visit),
  bias: visit.read(op.bias, op.dim * 4),
});

export const gatedActivation: Visitor<GatedActivationOp> = (op, visit) => ({
  ...op,
  gate: visit.read(op.gate, op.count * 4),
  up: visit.read(op.up, op.count * 4),
  out: visit.write(op.out, op.count * 4),
});

const inPlace = <Op extends { x: number; count: number }>(op: Op, visit: Visit): Op => ({
  ...op,
  x: visit.update(op.x, op.count * 4),
});
export const gelu: Visitor<GeluOp> = inPlace;
export const softcap: Visitor<SoftcapOp> = inPlace;
export const scale: Visitor<ScaleOp> = inPlace;

/** `add`, `multiply` and `sigmoidGate`. */
export const pairwise: Visitor<AddOp> = (op, visit) => ({
  ...op,
  x: visit.read(op.x, op.count * 4),
  y: visit.read(op.y, op.count * 4),
  out: visit.write(op.out, op.count * 4),
});

export const copyRows: Visitor<CopyRowsOp> = (op, visit) => {
  const { x, rows, out, numRows, dim } = op;
  const spans = spansOf(visit.ints(rows, numRows));
  return {
    ...op,
    x: visitRows(visit, 'read', { offset: x, rowBytes: dim * 4, spans }),
    rows: visit.read(rows, numRows * 4),
    out: visit.write(out, numRows * dim * 4),
  };
};

export const copyBlocks: Visitor<CopyBlocksOp> = (op, visit) => {
  const { x, out, numOuter, numInner, width, from, to } = op;
  const sizeOf = ({ outer, inner }: CopyBlocksOp['from']): number =>
    numOuter === 0 || numInner === 0 ? 0 : ((numOuter - 1) * outer + (numInner - 1) * inner + width) * 4;
  return { ...op, x: visit.read(x, sizeOf(from)), out: visit.update(out, sizeOf(to)) };
};

export const mixStreams: Visitor<MixStreamsOp> = (op, visit) => {
  const { base, x, coefficients, out, numOut, numIn, numRows, dim } = op;
  return {
    ...op,
    base: visit.read(base, numOut * numRows * dim * 4),
    x: visit.read(x, numIn * numRows * dim * 4),
    coefficients: visit.read(coefficients, numRows * numOut * numIn * 4),
    out: visit.write(out, numOut * numRows * dim * 4),
  };
};

export const matchLengths: Visitor<MatchLengthsOp> = (op, visit) => ({
  ...op,
  x: visit.update(op.x, op.numRows * op.dim * 4),
  target: visit.read(op.target, op.numRows * op.dim * 4),
});

export const sparsify: Visitor<SparsifyOp> = (op, visit) => ({
  ...op,
  x: visit.update(op.x, op.numRows * op.dim * 4),
});

export const topLogits: Visitor<TopLogitsOp> = (op, visit) => {
  checkTopLogits(op);
  const { logits, numRows, vocabSize, k, values, ids, stats, scratch } = op;
  return {
    ...op,
    logits: visit.read(logits, numRows * vocabSize * 4),
    values: visit.write(values, numRows * k * 4),
    ids: visit.write(ids, numRows * k * 4),
    stats: visit.write(stats, numRows * TOP_STATS * 4),
    scratch: visit.write(scratch, numRows * topScratch(vocabSize) * 4),
  };
};
