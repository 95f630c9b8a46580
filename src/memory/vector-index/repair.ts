import { MAX_BATCH } from './columns.ts';
import type { Graph } from './graph.ts';
import { type LinkContext, linkNodes } from './link-nodes.ts';
import { createLinkPicker } from './link-picker.ts';
import { DEAD, LEAVING, LIVE, type SlotTable } from './slot-table.ts';

/** Deleted nodes stay in the graph for routing until there are this many per live one. */
const DEAD_SHARE = 0.1;
const MIN_DEAD = 32;
/** Neighbours of a deleted neighbour that may replace it. */
const HEIRS = 8;
/** New nodes push links out of full rows: changes per live node before unreachable nodes are searched. */
const CHECK_SHARE = 0.125;
const MIN_CHANGES = 256;

/** Removes deleted nodes from the graph, some rows per write, and reconnects unreachable ones. */
export interface Repair {
  /** A node was linked or deleted. */
  noteChange(): void;
  /** A new node has a deleted neighbour. */
  noteDeadLink(): void;
  /** Works on at most `maxRows` rows. */
  step(maxRows: number): void;
  /** Whether `step` has work. */
  readonly isDue: boolean;
}

export interface RepairContext extends LinkContext {
  readonly slots: SlotTable;
  /** Placed but unlinked slots have no links. */
  isLinked(slot: number): boolean;
}

export function createRepair(context: RepairContext): Repair {
  const { graph, slots, space } = context;
  /** The next slot of the current sweep; -1: none. */
  let cursor = -1;
  let numChanges = 0;
  let hasDeadLinks = false;

  const beginSweep = (): void => {
    const { states } = space().columns;
    for (let slot = 0; slot < slots.end; slot++) if (states[slot] === DEAD) states[slot] = LEAVING;
    cursor = 0;
    hasDeadLinks = false;
  };

  const sweepRows = (maxRows: number): void => {
    const end = Math.min(slots.end, cursor + maxRows);
    let highest = 0;
    for (let slot = cursor; slot < end; slot++) {
      if (context.isLinked(slot)) highest = Math.max(highest, graph.levelOf(slot));
    }
    for (let level = highest; level >= 0; level--) bypassDead(context, cursor, end, level);
    cursor = end;
    if (cursor < slots.end) return;
    cursor = -1;
    // A leaving node became a neighbour meanwhile, so another sweep is needed.
    if (hasDeadLinks) beginSweep();
    else release();
  };

  const release = (): void => {
    const { states } = space().columns;
    for (let slot = 0; slot < slots.end; slot++) {
      if (states[slot] !== LEAVING) continue;
      graph.clearRows(slot);
      slots.release(slot);
    }
    if (graph.entry >= 0 && !context.isLinked(graph.entry)) moveEntry(context);
    connectAll(context);
    numChanges = 0;
  };

  const isSweepDue = (): boolean => slots.numDead > Math.max(MIN_DEAD, slots.numLive * DEAD_SHARE);
  const isCheckDue = (): boolean => numChanges > Math.max(MIN_CHANGES, slots.numLive * CHECK_SHARE);
  return {
    noteChange: () => void numChanges++,
    noteDeadLink: () => void (hasDeadLinks = true),
    get isDue() {
      return cursor >= 0 || isSweepDue() || isCheckDue();
    },
    step(maxRows) {
      if (cursor < 0 && isSweepDue()) beginSweep();
      if (cursor >= 0) sweepRows(maxRows);
      else if (isCheckDue()) {
        connectAll(context);
        numChanges = 0;
      }
    },
  };
}

/** Replaces leaving nodes in the rows of [first, end) by their nearest neighbours. */
function bypassDead({ graph, space, isLinked }: RepairContext, first: number, end: number, level: number): void {
  const { states } = space().columns;
  const degree = graph.degreeOf(level);
  const picker = createLinkPicker(space(), degree, (HEIRS + 1) * degree);
  for (let slot = first; slot < end; slot++) {
    if (!isLinked(slot) || states[slot] === LEAVING || graph.levelOf(slot) < level) continue;
    const row = graph.row(slot, level);
    const links = row.subarray(0, graph.count(row));
    if (!links.some((id) => states[id] === LEAVING)) continue;
    const candidates = new Set(links.filter((id) => states[id] !== LEAVING));
    for (const gone of links.filter((id) => states[id] === LEAVING)) {
      const heirs = graph.row(gone, level).filter((id) => id >= 0 && id !== slot && states[id] === LIVE);
      for (const heir of heirs.subarray(0, HEIRS)) candidates.add(heir);
    }
    if (candidates.size <= degree) graph.setRow(slot, level, [...candidates]);
    else picker.add(slot, [...candidates], (picked) => graph.setRow(slot, level, picked));
  }
  picker.flush();
}

/** To one of the highest remaining nodes. */
function moveEntry({ graph, slots, isLinked }: RepairContext): void {
  graph.entry = -1;
  graph.topLevel = 0;
  for (let slot = 0; slot < slots.end; slot++) {
    if (!isLinked(slot)) continue;
    if (graph.entry < 0 || graph.levelOf(slot) > graph.topLevel) {
      graph.entry = slot;
      graph.topLevel = graph.levelOf(slot);
    }
  }
}

function findReached(graph: Graph, end: number): Uint8Array {
  const reached = new Uint8Array(end);
  const queue = new Int32Array(end);
  let [head, tail] = [0, 0];
  reached[graph.entry] = 1;
  queue[tail++] = graph.entry;
  while (head < tail) {
    const row = graph.row(queue[head++]!, 0);
    for (let i = 0; i < row.length && row[i]! >= 0; i++) {
      const id = row[i]!;
      if (reached[id] === 1) continue;
      reached[id] = 1;
      queue[tail++] = id;
    }
  }
  return reached;
}

/** Links unreachable nodes again; one that is pushed out again replaces a last link. */
function connectAll(context: RepairContext): void {
  const { graph, slots, space, isLinked } = context;
  if (graph.entry < 0) return;
  const findLost = (): number[] => {
    const reached = findReached(graph, slots.end);
    const { states } = space().columns;
    const unreached: number[] = [];
    for (let slot = 0; slot < slots.end; slot++) {
      if (reached[slot] === 0 && isLinked(slot) && states[slot] === LIVE) unreached.push(slot);
    }
    return unreached;
  };
  let lost = findLost();
  for (let i = 0; i < lost.length; i += MAX_BATCH) linkNodes(context, lost.slice(i, i + MAX_BATCH));
  for (let round = 0; lost.length > 0 && round < 8; round++) {
    lost = findLost();
    for (const slot of lost) forceLink(graph, slot, round);
  }
}

/** Adds the node to a neighbour's row, in a free place or the last one. */
function forceLink(graph: Graph, slot: number, round: number): void {
  const own = graph.row(slot, 0);
  const neighbours = own.subarray(0, graph.count(own));
  if (neighbours.length === 0) return;
  const hasRoom = (id: number): boolean => graph.row(id, 0).at(-1) === -1;
  const neighbour = neighbours.find(hasRoom) ?? neighbours[round % neighbours.length]!;
  const row = graph.row(neighbour, 0);
  const links = [...row.subarray(0, graph.count(row))].slice(0, row.length - 1);
  graph.setRow(neighbour, 0, [...links, slot]);
}
