import {
  type ExpertsOp,
  type ExpertStack,
  expertScratchBytes,
  type GatedMatmulOp,
  type GatherRowsOp,
  type InputNorm,
  type LowRankDeltaOp,
  type MatmulOp,
} from '../contract.ts';
import { checkExperts } from '../experts-op.ts';
import { checkLowRank } from '../op-limits.ts';
import { spansOf, type Visit, visitOptional, type Visitor, visitRows } from './visit.ts';

function visitNorm(visit: Visit, norm: InputNorm | null | undefined, numTokens: number, dim: number): InputNorm | null {
  if (norm == null) return null;
  const { weight, epsilon, scratch } = norm;
  return {
    weight: visit.read(weight, dim * 4),
    epsilon,
    scratch: visit.write(scratch, numTokens * dim * 4),
  };
}

function visitStack(visit: Visit, { weight, bias }: ExpertStack): ExpertStack {
  return { weight: visit.matrix(weight), bias: visitOptional(visit, bias, weight.numRows * 4) };
}

export const gatherRows: Visitor<GatherRowsOp> = (op, visit) => ({
  ...op,
  table: visit.matrix(op.table),
  ids: visit.read(op.ids, op.numRows * 4),
  out: visit.write(op.out, op.numRows * op.table.numCols * 4),
});

export const matmul: Visitor<MatmulOp> = (op, visit) => {
  const { x, numTokens, norm, outputs } = op;
  const { numCols } = outputs[0]!.weight;
  return {
    x: visit.read(x, numTokens * numCols * 4),
    numTokens,
    norm: visitNorm(visit, norm, numTokens, numCols),
    outputs: outputs.map(({ weight, out, bias, accumulate }) => ({
      weight: visit.matrix(weight),
      out: visit[accumulate ? 'update' : 'write'](out, numTokens * weight.numRows * 4),
      bias: visitOptional(visit, bias, weight.numRows * 4),
      accumulate,
    })),
  };
};

export const gatedMatmul: Visitor<GatedMatmulOp> = (op, visit) => {
  const { x, numTokens, norm, gate, up, out, scratch } = op;
  const { numCols, numRows } = gate.weight;
  return {
    ...op,
    x: visit.read(x, numTokens * numCols * 4),
    norm: visitNorm(visit, norm, numTokens, numCols),
    gate: visitStack(visit, gate),
    up: visitStack(visit, up),
    out: visit.write(out, numTokens * numRows * 4),
    scratch: visit.write(scratch, numTokens * numRows * 4),
  };
};

export const experts: Visitor<ExpertsOp> = (op, visit) => {
  const sizes = checkExperts(op);
  const { x, numTokens, logits, routing, out, scratch } = op;
  const { numExperts, dim } = sizes;
  return {
    ...op,
    x: visit.read(x, numTokens * dim * 4),
    logits: visit.read(logits, numTokens * numExperts * 4),
    routing: {
      ...routing,
      choiceBias: visitOptional(visit, routing.choiceBias, numExperts * 4),
      expertScales: visitOptional(visit, routing.expertScales, numExperts * 4),
    },
    gate: visitStack(visit, op.gate),
    up: visitStack(visit, op.up),
    down: visitStack(visit, op.down),
    out: visit.update(out, numTokens * dim * 4),
    scratch: visit.write(scratch, expertScratchBytes(sizes, numTokens)),
  };
};

export const lowRankDelta: Visitor<LowRankDeltaOp> = (op, visit) => {
  checkLowRank(op);
  const { x, numTokens, numCols, numRows, a, b, rank, rows, out, scratch } = op;
  const spans = rows === null ? [{ first: 0, count: numTokens }] : spansOf(visit.ints(rows, numTokens));
  return {
    ...op,
    x: visitRows(visit, 'read', { offset: x, rowBytes: numCols * 4, spans }),
    a: visit.read(a, rank * numCols * 4),
    b: visit.read(b, numRows * rank * 4),
    rows: visitOptional(visit, rows, numTokens * 4),
    out: visitRows(visit, 'update', { offset: out, rowBytes: numRows * 4, spans }),
    scratch: visit.write(scratch, numTokens * rank * 4),
  };
};
