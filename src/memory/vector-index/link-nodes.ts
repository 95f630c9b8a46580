import { MAX_BATCH } from './columns.ts';
import type { Graph } from './graph.ts';
import { createLinkPicker } from './link-picker.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';
import { LIVE } from './slot-table.ts';
import type { VectorSpace } from './vector-space.ts';

export interface LinkContext {
  readonly space: () => VectorSpace;
  readonly graph: Graph;
  readonly options: ResolvedVectorIndexOptions;
  /** Called when a new node got a deleted neighbour. */
  onDeadLink(): void;
}

/** A batch below this share of the graph finds the same neighbours as single nodes. */
const BATCH_SHARE = 16;

export function batchSize(numLinked: number): number {
  return Math.max(1, Math.min(MAX_BATCH, Math.floor(numLinked / BATCH_SHARE)));
}

/**
 * Links at most `MAX_BATCH` placed nodes: all search the unchanged graph and each other, then links back are added. The result
 * does not depend on the number of threads.
 */
export function linkNodes(context: LinkContext, slots: readonly number[]): void {
  const { graph } = context;
  if (graph.entry < 0) {
    graph.entry = slots[0]!;
    graph.topLevel = graph.levelOf(slots[0]!);
    if (slots.length > 1) linkNodes(context, slots.slice(1));
    return;
  }
  const [entry, topLevel] = [graph.entry, graph.topLevel];
  const highest = slots.reduce((best, slot) => (graph.levelOf(slot) > graph.levelOf(best) ? slot : best));
  // From below: a node already linked above would find itself first and stop.
  for (let level = 0; level <= graph.levelOf(highest); level++) {
    const members = slots.filter((slot) => graph.levelOf(slot) >= level);
    linkLevel(context, members, level, level <= topLevel ? { entry, topLevel } : null);
  }
  if (graph.levelOf(highest) > topLevel) {
    graph.entry = highest;
    graph.topLevel = graph.levelOf(highest);
  }
}

type Start = { readonly entry: number; readonly topLevel: number } | null;

function linkLevel(context: LinkContext, members: readonly number[], level: number, start: Start): void {
  const { graph, options } = context;
  const { m, efConstruction } = options;
  const space = context.space();
  const found: readonly Iterable<number>[] =
    start === null ? members.map(() => []) : findNear(context, members, level, start);
  const picker = createLinkPicker(space, m, efConstruction);
  members.forEach((slot, i) => {
    const candidates = new Set([...found[i]!, ...members]);
    candidates.delete(slot);
    // Takes all when there are few: the first nodes must stay connected.
    if (candidates.size < m) graph.setRow(slot, level, [...candidates]);
    else picker.add(slot, [...candidates], (links) => graph.setRow(slot, level, links));
  });
  picker.flush();
  linkBack(context, members, level);
}

/** The nearest nodes of each; deleted ones only when there are too few others. */
function findNear(
  { space, graph, options, onDeadLink }: LinkContext,
  members: readonly number[],
  level: number,
  start: NonNullable<Start>,
): Int32Array[] {
  const { pack, work, workAt, columns, table, lanes, columnAt, finish } = space();
  const { dim, efConstruction: width, m } = options;
  members.forEach((slot, i) => readVector(space(), slot, work.query.subarray(i * dim, (i + 1) * dim)));
  pack.searchGraph({
    table,
    queries: workAt.query,
    numQueries: members.length,
    links: columnAt.links,
    degree: graph.degreeOf(0),
    upper: columnAt.upper,
    upperDegree: graph.degreeOf(1),
    upperAt: columnAt.upperAt,
    ...start,
    level,
    width,
    ids: workAt.ids,
    scores: workAt.scores,
    lanes,
  });
  finish();
  return members.map((_, i) => {
    const row = work.ids.subarray(i * width, (i + 1) * width);
    const end = row.indexOf(-1);
    const ids = end < 0 ? row : row.subarray(0, end);
    const live = ids.filter((id) => columns.states[id] === LIVE);
    if (live.length === ids.length || live.length >= m) return live;
    onDeadLink();
    return ids.slice();
  });
}

/** From the exact vectors, or else from the bytes. */
export function readVector(space: VectorSpace, slot: number, out: Float32Array): void {
  const { vectors, codes, scales } = space.columns;
  const dim = out.length;
  if (vectors.length > 0) out.set(vectors.subarray(slot * dim, (slot + 1) * dim));
  else for (let i = 0; i < dim; i++) out[i] = codes[slot * dim + i]! * scales[slot]!;
}

/** Adds links back to the new nodes; full rows keep the best. */
function linkBack({ space, graph }: LinkContext, members: readonly number[], level: number): void {
  const newLinks = new Map<number, number[]>();
  for (const slot of members) {
    for (const target of graph.row(slot, level)) {
      if (target < 0) break;
      const sources = newLinks.get(target);
      if (sources === undefined) newLinks.set(target, [slot]);
      else sources.push(slot);
    }
  }
  const degree = graph.degreeOf(level);
  const picker = createLinkPicker(space(), degree, 2 * MAX_BATCH + degree);
  for (const [target, sources] of newLinks) {
    const row = graph.row(target, level);
    const links = [...row.subarray(0, graph.count(row))];
    const all = [...links, ...sources.filter((source) => !links.includes(source))];
    if (all.length <= degree) graph.setRow(target, level, all);
    else picker.add(target, all, (picked) => graph.setRow(target, level, picked));
  }
  picker.flush();
}
