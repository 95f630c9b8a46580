import type { DistancesOp, PickLinksOp, SearchGraphOp, VectorTable } from '../contract.ts';
import { checkDistances, checkGraph } from '../op-limits.ts';
import type { Visit, Visitor } from './visit.ts';

// Their ranges depend on the graph. Models do not use them, so whole allocations are precise enough.
function visitTable(visit: Visit, table: VectorTable): VectorTable {
  checkDistances(table);
  return {
    ...table,
    vectors: visit.updateAll(table.vectors),
    scales: table.scales === null ? null : visit.updateAll(table.scales),
  };
}

export const distances: Visitor<DistancesOp> = (op, visit) => ({
  ...op,
  ...visitTable(visit, op),
  query: visit.updateAll(op.query),
  ids: op.ids === null ? null : visit.updateAll(op.ids),
  out: visit.updateAll(op.out),
});

export const searchGraph: Visitor<SearchGraphOp> = (op, visit) => {
  checkGraph(op.width, Math.max(op.degree, op.upperDegree), op.lanes);
  return {
    ...op,
    table: visitTable(visit, op.table),
    queries: visit.updateAll(op.queries),
    links: visit.updateAll(op.links),
    upper: visit.updateAll(op.upper),
    upperAt: visit.updateAll(op.upperAt),
    ids: visit.updateAll(op.ids),
    scores: visit.updateAll(op.scores),
    lanes: { ...op.lanes, at: visit.updateAll(op.lanes.at) },
  };
};

export const pickLinks: Visitor<PickLinksOp> = (op, visit) => {
  checkGraph(op.width, op.degree, op.lanes);
  return {
    ...op,
    table: visitTable(visit, op.table),
    lists: visit.updateAll(op.lists),
    candidates: visit.updateAll(op.candidates),
    out: visit.updateAll(op.out),
    lanes: { ...op.lanes, at: visit.updateAll(op.lanes.at) },
  };
};
