import { alignArena, graphLaneBytes, MAX_GRAPH_WIDTH } from '../../kernels/contract.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';

/** Vectors linked in one call: enough work for several threads, few enough not to miss each other. */
export const MAX_BATCH = 128;
/** Lists per `pickLinks`. */
export const MAX_LISTS = 2048;

/** The data of each slot, one array per kind; also the content of a saved index. */
export const COLUMNS = ['vectors', 'codes', 'scales', 'keys', 'hashes', 'states', 'links', 'levels', 'upperAt', 'upper'] as const; // prettier-ignore
export type ColumnName = (typeof COLUMNS)[number];

/** Bytes per row of a column; 0: absent. `upper` has its own number of rows. */
export function columnStrides(options: ResolvedVectorIndexOptions, hasGraph: boolean): Record<ColumnName, number> {
  const { dim, storage, keepsExact, m } = options;
  const isBytes = storage === 'int8';
  return {
    vectors: isBytes && !keepsExact ? 0 : dim * 4,
    codes: isBytes ? dim : 0,
    scales: isBytes ? 4 : 0,
    keys: 8,
    hashes: 4,
    states: 1,
    links: hasGraph ? 2 * m * 4 : 0,
    levels: hasGraph ? 1 : 0,
    upperAt: hasGraph ? 4 : 0,
    upper: hasGraph ? m * 4 : 0,
  };
}

/** Rows above level 0: twice the average of 1 / (m - 1) per node. If they run out, a node gets a lower level. */
export function numUpperRows(capacity: number, m: number): number {
  return Math.ceil((2 * capacity) / m) + 64;
}

/** Buffers for inputs and results of kernel calls. */
export const WORK = ['query', 'ids', 'scores', 'lists', 'candidates', 'picked', 'lanes'] as const;
export type WorkName = (typeof WORK)[number];

/** Bytes of each buffer. */
export function workSizes(
  { dim, m, efConstruction, numThreads }: ResolvedVectorIndexOptions,
  capacity: number,
  hasGraph: boolean,
): Record<WorkName, number> {
  const batch = hasGraph ? MAX_BATCH : 1;
  const results = Math.max(capacity, hasGraph ? Math.max(MAX_GRAPH_WIDTH, batch * efConstruction) : 0);
  const listLength = 2 * (efConstruction + MAX_BATCH) + 8 * m;
  return {
    query: batch * dim * 4,
    ids: results * 4,
    scores: results * 4,
    lists: hasGraph ? MAX_LISTS * 12 : 0,
    candidates: hasGraph ? MAX_LISTS * listLength * 4 : 0,
    picked: hasGraph ? MAX_LISTS * 2 * m * 4 : 0,
    lanes: hasGraph ? numThreads * graphLaneBytes(capacity, MAX_GRAPH_WIDTH, 2 * m) : 0,
  };
}

export function arenaBytesFor(options: ResolvedVectorIndexOptions, capacity: number, hasGraph: boolean): number {
  const strides = columnStrides(options, hasGraph);
  let bytes = 0;
  for (const name of COLUMNS) {
    bytes += alignArena(strides[name] * (name === 'upper' ? numUpperRows(capacity, options.m) : capacity));
  }
  for (const size of Object.values(workSizes(options, capacity, hasGraph))) bytes += alignArena(size);
  return bytes;
}
