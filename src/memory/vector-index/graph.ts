import type { Random } from '../../core/random.ts';
import { numUpperRows } from './columns.ts';
import type { DirtyPages } from './dirty-pages.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';
import type { VectorSpace } from './vector-space.ts';

/** Five levels of 32 neighbours connect more nodes than there can be. */
const MAX_LEVEL = 12;

/** Who is whose neighbour: rows of slots in the space, on level 0 of `2 m`, above of `m`; -1 ends a row early. */
export interface Graph {
  /** Where searches start; -1: the graph is empty. */
  entry: number;
  topLevel: number;
  /** Rows above level 0 that are in use. */
  upperEnd: number;
  degreeOf(level: number): number;
  levelOf(slot: number): number;
  /** Gives a slot a level unless it has one: for as long as there is the graph: another vector in the same slot keeps it. */
  place(slot: number): void;
  /** A view of a node's row. */
  row(slot: number, level: number): Int32Array;
  /** How many neighbours a row has. */
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
