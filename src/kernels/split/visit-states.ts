import type { CausalConvOp, DeltaScanOp, SelectiveScanOp, StateRows } from '../contract.ts';
import { checkConv, checkDelta, checkScan } from '../op-limits.ts';
import {
  type RowSpan,
  sequenceSpans,
  type Visit,
  visitOptional,
  type Visitor,
  visitRows,
  visitStates,
} from './visit.ts';

interface StepRows {
  readonly rows: StateRows;
  readonly visitAll: (access: 'read' | 'write', offset: number, width: number) => number;
}

/** The states and the rows of the sequences; `width`: values of a row. */
function visitStep(visit: Visit, op: StateRows): StepRows {
  const spans: readonly RowSpan[] = sequenceSpans(visit, op);
  const { states, partOffset, sequences, stateTable, numSequences } = op;
  return {
    rows: {
      states: visitStates(visit, states),
      partOffset,
      sequences: visit.read(sequences, numSequences * 16),
      stateTable: visit.read(stateTable, numSequences * 12),
      numSequences,
    },
    visitAll: (access, offset, width) => visitRows(visit, access, { offset, rowBytes: width * 4, spans }),
  };
}

export const causalConv: Visitor<CausalConvOp> = (op, visit) => {
  checkConv(op);
  const { rows, visitAll } = visitStep(visit, op);
  const { x, weight, bias, out, channels, width } = op;
  return {
    ...op,
    ...rows,
    x: visitAll('read', x, channels),
    weight: visit.read(weight, width * channels * 4),
    bias: visitOptional(visit, bias, channels * 4),
    out: visitAll('write', out, channels),
  };
};

export const selectiveScan: Visitor<SelectiveScanOp> = (op, visit) => {
  checkScan(op);
  const { rows, visitAll } = visitStep(visit, op);
  const { numHeads, headDim, numGroups, stateDim } = op;
  return {
    ...op,
    ...rows,
    x: visitAll('read', op.x, numHeads * headDim),
    dt: visitAll('read', op.dt, numHeads),
    dtBias: visit.read(op.dtBias, numHeads * 4),
    a: visit.read(op.a, numHeads * 4),
    d: visit.read(op.d, numHeads * 4),
    b: visitAll('read', op.b, numGroups * stateDim),
    c: visitAll('read', op.c, numGroups * stateDim),
    out: visitAll('write', op.out, numHeads * headDim),
  };
};

export const deltaScan: Visitor<DeltaScanOp> = (op, visit) => {
  checkDelta(op);
  const { rows, visitAll } = visitStep(visit, op);
  const { numHeads, numKeyHeads, keyDim, valueDim } = op;
  return {
    ...op,
    ...rows,
    q: visitAll('read', op.q, numKeyHeads * keyDim),
    k: visitAll('read', op.k, numKeyHeads * keyDim),
    v: visitAll('read', op.v, numHeads * valueDim),
    dt: visitAll('read', op.dt, numHeads),
    dtBias: visit.read(op.dtBias, numHeads * 4),
    a: visit.read(op.a, numHeads * 4),
    beta: visitAll('read', op.beta, numHeads),
    out: visitAll('write', op.out, numHeads * valueDim),
  };
};
