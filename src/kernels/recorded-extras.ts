import type { GraphLanes, KernelPack, VectorTable } from './contract.ts';
import { checkRegions } from './kv-region.ts';
import { checkDistances, checkGraph, checkLowRank, checkTopLogits } from './op-limits.ts';
import { OPCODES, PAGE_KINDS } from './opcodes.ts';
import type { RecordedPackParts } from './recorded-parts.ts';

/** Word 30 of a record: packs whose threads have no numbers assign lanes with it. */
const LANE_WORD = 28;

const tableWords = ({ vectors, dim, format, scales, metric }: VectorTable): number[] => [
  vectors,
  dim,
  format === 'int8' ? 1 : 0,
  scales ?? 0,
  metric === 'l2' ? 1 : 0,
];

function withLanes(words: readonly number[], { at, laneBytes }: GraphLanes): number[] {
  const all = Array.from({ length: LANE_WORD + 1 }, () => 0);
  [...words, at, laneBytes].forEach((word, i) => (all[i] = word));
  return all;
}

/** Operations of recorded packs beyond a plain forward pass: packed pages, adapters, vectors, top logits. */
export function createRecordedExtras(
  record: RecordedPackParts['record'],
): Pick<KernelPack, 'packPages' | 'lowRankDelta' | 'distances' | 'searchGraph' | 'pickLinks' | 'topLogits'> {
  return {
    packPages({ from, to, firstLayer, numLayers, pages, numPages }) {
      checkRegions('packPages', from, to);
      const words = [from.base, from.pageBytes, from.layerBytes, from.numKvHeads, from.headDim];
      words.push(PAGE_KINDS[from.precision], to.base, to.pageBytes, to.layerBytes, PAGE_KINDS[to.precision]);
      words.push(pages, numPages, firstLayer, numLayers);
      record(OPCODES.packPages, words, 'barrier', numPages * numLayers * from.numKvHeads);
    },

    lowRankDelta(op) {
      checkLowRank(op);
      const { x, numTokens, numCols, a, b, rank, scale, out, numRows, scratch } = op;
      if (numTokens === 0) return;
      const rows = op.rows ?? 0;
      record(OPCODES.lowRankDown, [x, a, scratch, numCols, rank, rows, numTokens], 'barrier', numTokens * rank);
      record(OPCODES.lowRankUp, [scratch, b, out, numRows, rank, rows, numTokens, { f32: scale }]);
    },

    distances(op) {
      checkDistances(op);
      const { query, vectors, numVectors, dim, format, scales, ids, metric, out } = op;
      const isL2 = metric === 'l2' ? 1 : 0;
      const words = [query, vectors, numVectors, dim, format === 'int8' ? 1 : 0, scales ?? 0, ids ?? 0, isL2, out];
      record(OPCODES.distances, words);
    },

    searchGraph(op) {
      const { table, queries, numQueries, links, degree, upper, upperDegree, upperAt, lanes } = op;
      checkDistances(table);
      checkGraph(op.width, Math.max(degree, upperDegree), lanes);
      const words = [...tableWords(table), queries, numQueries, links, degree, upper, upperDegree, upperAt];
      words.push(lanes.numNodes, op.entry, op.topLevel, op.level, op.width, op.ids, op.scores);
      record(OPCODES.searchGraph, withLanes(words, lanes));
    },

    pickLinks(op) {
      const { table, lists, numLists, candidates, width, degree, isFilled, out, lanes } = op;
      checkDistances(table);
      checkGraph(width, degree, lanes);
      const words = [...tableWords(table), lists, numLists, candidates, width, degree, isFilled ? 1 : 0, out];
      record(OPCODES.pickLinks, withLanes([...words, lanes.numNodes], lanes));
    },

    topLogits(op) {
      checkTopLogits(op);
      const { logits, numRows, vocabSize, k, values, ids, stats, scratch } = op;
      if (numRows === 0) return;
      // First, all threads compute maxima and sums of blocks; then the best of each row, which few blocks can contain.
      for (const isMerging of [0, 1]) {
        record(OPCODES.topLogits, [logits, numRows, vocabSize, k, values, ids, stats, scratch, isMerging]);
      }
    },
  };
}
