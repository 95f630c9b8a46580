import type { Random } from '../../core/random.ts';
import { numUpperRows } from './columns.ts';
import type { DirtyPages } from './dirty-pages.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';
import type { VectorSpace } from './vector-space.ts';

const MAX_LEVEL = 12;

/** Neighbour lists: rows of slots, `2 m` on level 0 and `m` above; -1 ends a row early. */
export interface Graph {
  /** Start of searches; -1: empty graph. */
  entry: number;
  topLevel: number;
  /** Used rows above level 0. */
  upperEnd: number;
  degreeOf(level: number): number;
  levelOf(slot: number): number;
  /** Gives a slot a level unless it has one; a later vector in the same slot keeps it. */
  place(slot: number): void;
  row(slot: number, level: number): Int32Array;
  /** Number of neighbours in a row. */
  count(row: Int32Array): number;
  setRow(slot: number, level: number, links: ArrayLike<number>): void;
  clearRows(slot: number): void;
}

export interface GraphState {
  readonly entry: number;
  readonly topLevel: number;
  readonly upperEnd: number;
}

export function createGraph(
  space: () => VectorSpace,
  { m }: ResolvedVectorIndexOptions,
  random: Random,
  dirty: DirtyPages,
  state: GraphState = { entry: -1, topLevel: 0, upperEnd: 0 },
): Graph {
  const degreeOf = (level: number): number => (level === 0 ? 2 * m : m);
  const rowIndex = (slot: number, level: number): number =>
    level === 0 ? slot : space().columns.upperAt[slot]! + level - 1;
  const row = (slot: number, level: number): Int32Array => {
    const { links, upper } = space().columns;
    const first = rowIndex(slot, level) * degreeOf(level);
    return (level === 0 ? links : upper).subarray(first, first + degreeOf(level));
  };
  const graph: Graph = {
    ...state,
    degreeOf,
    levelOf: (slot) => space().columns.levels[slot]! - 1,
    place(slot) {
      const { levels, upperAt, upper } = space().columns;
      if (levels[slot] !== 0) return;
      // P(level >= l) = m^-l
      const drawn = Math.floor(-Math.log(1 - random.next()) / Math.log(m));
      const numRows = numUpperRows(space().capacity, m);
      const level = Math.min(drawn, MAX_LEVEL, numRows - graph.upperEnd);
      levels[slot] = level + 1;
      upperAt[slot] = level === 0 ? -1 : graph.upperEnd;
      upper.fill(-1, graph.upperEnd * m, (graph.upperEnd + level) * m);
      for (let l = 0; l < level; l++) dirty.mark('upper', graph.upperEnd + l);
      graph.upperEnd += level;
      dirty.mark('levels', slot);
      dirty.mark('upperAt', slot);
      graph.setRow(slot, 0, []);
    },
    row,
    count(links) {
      const end = links.indexOf(-1);
      return end < 0 ? links.length : end;
    },
    setRow(slot, level, links) {
      const target = row(slot, level);
      target.set(links);
      target.fill(-1, links.length);
      dirty.mark(level === 0 ? 'links' : 'upper', rowIndex(slot, level));
    },
    clearRows(slot) {
      for (let level = 0; level <= graph.levelOf(slot); level++) graph.setRow(slot, level, []);
    },
  };
  return graph;
}
