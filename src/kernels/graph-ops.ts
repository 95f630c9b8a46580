import type { Offset } from './arena-alignment.ts';
import type { DistancesOp } from './distances-op.ts';

/** Vectors that a graph connects; fields as in `DistancesOp`. Scores are nearness: dot products, or minus squared distances. */
export type VectorTable = Pick<DistancesOp, 'vectors' | 'dim' | 'format' | 'scales' | 'metric'>;

/** Memory of the threads' own: `numThreads` lanes of `laneBytes`, zeroed before the first use and with one numNodes always. */
export interface GraphLanes {
  readonly at: Offset;
  /** At least `graphLaneBytes`. */
  readonly laneBytes: number;
  /** Ids are below it. */
  readonly numNodes: number;
}

/** A walk through a graph of vectors, for each query. */
export interface SearchGraphOp {
  table: VectorTable;
  /** f32[numQueries × dim] */
  queries: Offset;
  numQueries: number;
  /** int32[… × degree]: the neighbours of a node on level 0; -1 ends a row early. */
  links: Offset;
  degree: number;
  /** int32[… × upperDegree]: the same on the levels above. */
  upper: Offset;
  upperDegree: number;
  /** int32[numNodes]: the row of a node's level 1; its level 2 is the row after that. */
  upperAt: Offset;
  /** Where all queries start, and the node's level. */
  entry: number;
  topLevel: number;
  /** Which level's neighbours are wanted: above it, only the nearest is followed. */
  level: number;
  /** How many are kept while searching, and returned; 1 to `MAX_GRAPH_WIDTH` */
  width: number;
  /** int32[numQueries × width], the nearest first, of equal ones the lower id; -1 behind the last. */
  ids: Offset;
  /** f32[numQueries × width]; -Infinity behind the last, and where a score is no number. */
  scores: Offset;
  lanes: GraphLanes;
}

/**
 * Of the `width` nearest candidates, the nearest first: a node takes those that are nearer to it than to any taken before
 * (Malkov and Yashunin, algorithm 4). Itself and what is named twice do not count.
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
  /** Places that stay free go to the nearest of those not taken. */
  isFilled: boolean;
  /** int32[numLists × degree]; -1 behind the last */
  out: Offset;
  lanes: GraphLanes;
}

/** Largest width of a search. */
export const MAX_GRAPH_WIDTH = 16384;
/** Most neighbours of a node. */
export const MAX_GRAPH_DEGREE = 512;
/** Ids are kept with a bit beside them. */
export const MAX_GRAPH_NODES = 2 ** 30;

const HEADER_BYTES = 64;

/** Bytes of a lane: a header, where a search has been, the nearest so far, and the neighbours of one node. */
export function graphLaneBytes(numNodes: number, width: number, degree: number): number {
  const visited = Math.ceil((2 * numNodes) / 64) * 64;
  return Math.ceil((HEADER_BYTES + visited + 8 * width + 4 * degree) / 64) * 64;
}
