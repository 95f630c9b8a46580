import { assert } from '../../core/errors.ts';
import type { Graph } from './graph.ts';
import { FREE, LIVE, type SlotTable } from './slot-table.ts';
import type { VectorSpace } from './vector-space.ts';

/** Checks slots, keys and links against each other. */
export function checkIntegrity(
  space: VectorSpace,
  slots: SlotTable,
  graph: Graph | null,
  waiting: ReadonlySet<number>,
): void {
  const { states, keys } = space.columns;
  let [numLive, numDead, numKeys] = [0, 0, 0];
  for (let slot = 0; slot < slots.end; slot++) {
    const state = states[slot]!;
    if (state === LIVE) {
      numLive++;
      const own = slots.keysOf(slot);
      numKeys += own.length;
      for (const key of own) assert(slots.slotOf(key) === slot, `key ${key} is not where slot ${slot} says`);
    } else {
      if (state !== FREE) numDead++;
      assert(keys[slot] === 0 || state !== LIVE, `slot ${slot} has a key and state ${state}`);
    }
    if (graph !== null) checkRows(space, slots, graph, slot, waiting);
  }
  assert(numLive === slots.numLive, `${numLive} live slots, ${slots.numLive} counted`);
  assert(numDead === slots.numDead, `${numDead} deleted slots, ${slots.numDead} counted`);
  assert(numKeys === slots.size, `${numKeys} keys in slots, ${slots.size} in the table`);
  if (graph !== null && graph.entry >= 0) assert(states[graph.entry] !== FREE, `entry ${graph.entry} is a free slot`);
}

function checkRows(
  { columns }: VectorSpace,
  slots: SlotTable,
  graph: Graph,
  slot: number,
  waiting: ReadonlySet<number>,
): void {
  if (columns.states[slot] === FREE || waiting.has(slot)) return;
  for (let level = graph.levelOf(slot); level >= 0; level--) {
    const row = graph.row(slot, level);
    const links = row.subarray(0, graph.count(row));
    assert(new Set(links).size === links.length, `slot ${slot} names a neighbour twice on level ${level}`);
    for (const id of links) {
      const where = `slot ${slot} on level ${level} names ${id}`;
      assert(id >= 0 && id < slots.end && id !== slot, `${where}, which cannot be`);
      assert(columns.states[id] !== FREE, `${where}, which is free`);
      assert(graph.levelOf(id) >= level, `${where}, which ends at level ${graph.levelOf(id)}`);
    }
  }
}
