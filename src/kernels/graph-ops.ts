import type { Offset } from './arena-alignment.ts';
import type { DistancesOp } from './distances-op.ts';

/** The vectors of a graph; fields as in `DistancesOp`. Scores are dot products, or negated squared distances. */
export type VectorTable = Pick<DistancesOp, 'vectors' | 'dim' | 'format' | 'scales' | 'metric'>;

/** Scratch of the threads: `numThreads` lanes of `laneBytes`, zeroed before the first use; numNodes must not change. */
export interface GraphLanes {
  readonly at: Offset;
  /** At least `graphLaneBytes`. */
  readonly laneBytes: number;
  /** All ids are below it. */
  readonly numNodes: number;
}

/** A nearest-neighbour search in a graph of vectors, for each query. */
export interface SearchGraphOp {
  table: VectorTable;
  /** f32[numQueries × dim] */
  queries: Offset;
  numQueries: number;
  /** int32[… × degree]: the neighbours of a node on level 0; -1 ends a row early. */
  links: Offset;
  degree: number;
  /** int32[… × upperDegree]: the same for the levels above. */
  upper: Offset;
  upperDegree: number;
  /** int32[numNodes]: the row of a node's level 1; level 2 is the next row. */
  upperAt: Offset;
  /** The start node of all queries, and its level. */
  entry: number;
  topLevel: number;
  /** The level to search; above it, only the nearest node is followed. */
  level: number;
  /** Number of nodes kept while searching and returned; 1 to `MAX_GRAPH_WIDTH` */
  width: number;
  /** int32[numQueries × width], nearest first, ties by lower id; -1 after the last. */
  ids: Offset;
  /** f32[numQueries × width]; -Infinity after the last and for NaN scores. */
  scores: Offset;
  lanes: GraphLanes;
}

/**
 * Goes through the `width` nearest candidates, nearest first: a node takes those that are nearer to it than to any it has
 * taken (Malkov and Yashunin, algorithm 4). The node itself and duplicates do not count.
 */
export interface PickLinksOp {
  table: VectorTable;
  /** int32[numLists × 3]: node, first candidate, number of candidates */
  lists: Offset;
  numLists: number;
  /** int32 */
  candidates: Offset;
  /** 1 to `MAX_GRAPH_WIDTH` */
  width: number;
  degree: number;
  /** Fills free places with the nearest candidates not taken. */
  isFilled: boolean;
  /** int32[numLists × degree]; -1 after the last */
  out: Offset;
  lanes: GraphLanes;
}

/** Largest width of a search. */
export const MAX_GRAPH_WIDTH = 16384;
/** Most neighbours of a node. */
export const MAX_GRAPH_DEGREE = 512;
/** Ids share a word with one flag bit. */
export const MAX_GRAPH_NODES = 2 ** 30;

const HEADER_BYTES = 64;

/** Bytes of a lane: a header, the visited nodes, the nearest so far, and the neighbours of one node. */
export function graphLaneBytes(numNodes: number, width: number, degree: number): number {
  const visited = Math.ceil((2 * numNodes) / 64) * 64;
  return Math.ceil((HEADER_BYTES + visited + 8 * width + 4 * degree) / 64) * 64;
}
