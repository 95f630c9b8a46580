import type { AttentionOp, PackPagesOp, RopeOp, RotateAndStoreOp, WriteKvOp } from '../contract.ts';
import { checkRegions } from '../kv-region.ts';
import { checkWindow } from '../op-limits.ts';
import { sequenceSpans, visitOptional, type Visitor, visitRegion, visitRows } from './visit.ts';

export const rope: Visitor<RopeOp> = (op, visit) => ({
  ...op,
  x: visit.update(op.x, op.numTokens * op.numHeads * op.headDim * 4),
  cosSin: visit.read(op.cosSin, op.numTokens * op.rotaryDim * 4),
});

export const writeKv: Visitor<WriteKvOp> = (op, visit) => {
  const { kv, layer, k, v, slots, numTokens } = op;
  checkRegions('writeKv', kv, null);
  const sizeBytes = numTokens * kv.numKvHeads * kv.headDim * 4;
  return {
    ...op,
    k: visit.read(k, sizeBytes),
    v: visit.read(v, sizeBytes),
    slots: visit.read(slots, numTokens * 4),
    kv: visitRegion(visit, 'update', kv, { firstLayer: layer, numLayers: 1 }),
  };
};

export const rotateAndStore: Visitor<RotateAndStoreOp> = (op, visit) => {
  const { q, k, qNorm, kNorm, cosSin, numTokens, numHeads, headDim, rotaryDim, kv } = op;
  return {
    ...op,
    ...writeKv(op, visit),
    q: visit.update(q, numTokens * numHeads * headDim * 4),
    k: visit.update(k, numTokens * kv.numKvHeads * headDim * 4),
    qNorm: visitOptional(visit, qNorm, headDim * 4),
    kNorm: visitOptional(visit, kNorm, headDim * 4),
    cosSin: visit.read(cosSin, numTokens * rotaryDim * 4),
  };
};

export const packPages: Visitor<PackPagesOp> = (op, visit) => {
  const { from, to, pages, numPages } = op;
  checkRegions('packPages', from, to);
  return {
    ...op,
    pages: visit.read(pages, numPages * 8),
    from: visitRegion(visit, 'read', from, op),
    to: visitRegion(visit, 'update', to, op),
  };
};

export const attention: Visitor<AttentionOp> = (op, visit) => {
  const { kv, packed = null, layer, q, out, numHeads, sequences, numSequences, pageTables, sinks } = op;
  checkRegions('attention', kv, packed);
  checkWindow(op);
  const spans = sequenceSpans(visit, op);
  const rowBytes = numHeads * kv.headDim * 4;
  const layers = { firstLayer: layer, numLayers: 1 };
  return {
    ...op,
    q: visitRows(visit, 'read', { offset: q, rowBytes, spans }),
    kv: visitRegion(visit, 'read', kv, layers),
    packed: packed === null ? null : visitRegion(visit, 'read', packed, layers),
    out: visitRows(visit, 'write', { offset: out, rowBytes, spans }),
    sequences: visit.read(sequences, numSequences * 16),
    pageTables: visit.readRest(pageTables),
    sinks: visitOptional(visit, sinks, numHeads * 4),
  };
};
