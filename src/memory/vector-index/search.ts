import { MAX_GRAPH_WIDTH } from '../../kernels/contract.ts';
import { type BestHits, createBestHits } from './best-hits.ts';
import { planFilter } from './filter-plan.ts';
import type { Graph } from './graph.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';
import { scanAll, scanSome, toScore } from './scan.ts';
import { LIVE, type SlotTable } from './slot-table.ts';
import type { VectorFilter, VectorHit } from './types.ts';
import type { VectorSpace } from './vector-space.ts';

/** The query is in the work arrays. */
interface SearchContext {
  readonly space: VectorSpace;
  readonly slots: SlotTable;
  readonly options: ResolvedVectorIndexOptions;
  readonly graph: Graph | null;
  /** Slots not yet in the graph. */
  readonly waiting: readonly number[];
}

interface SearchRequest {
  readonly k: number;
  readonly ef: number;
  readonly filter: VectorFilter | null;
}

/** Factor between widths of repeated searches; after the last, everything is compared. */
const WIDENING = 4;
/** Because the share is an estimate. */
const SHARE_MARGIN = 1.2;
/** Above this share of the set, everything is compared. */
const SCAN_SHARE = 0.25;

export function searchVectors(context: SearchContext, request: SearchRequest): VectorHit[] {
  const { slots, graph } = context;
  const { k, ef, filter } = request;
  const wanted = Math.min(k, slots.size);
  if (wanted === 0) return [];
  if (graph === null || graph.entry < 0 || wanted > slots.size * SCAN_SHARE) return scan(context, request);

  let share = 1;
  if (filter !== null) {
    const plan = planFilter(filter, Math.max(ef, k), slots.size, (count) => sampleKeys(context, count));
    if (plan.scan) return scan(context, request);
    share = plan.share / SHARE_MARGIN;
  }
  // Deleted nodes take places too.
  const inGraph = slots.numLive + slots.numDead;
  let width = Math.ceil((Math.max(ef, k) * inGraph) / (slots.numLive * share));
  for (; width <= Math.min(MAX_GRAPH_WIDTH, inGraph * SCAN_SHARE); width *= WIDENING) {
    const best = createBestHits(k);
    offerWaiting(context, filter, best);
    walk(context, graph, width, filter, best);
    if (best.isFull) return best.sorted();
  }
  return scan(context, request);
}

/** Evenly spaced keys of live slots. */
function sampleKeys({ slots, space }: SearchContext, count: number): number[] {
  const { states, keys } = space.columns;
  const step = Math.max(1, Math.floor(slots.end / count));
  const sample: number[] = [];
  for (let slot = 0; slot < slots.end; slot += step) if (states[slot] === LIVE) sample.push(keys[slot]!);
  return sample;
}

function offerKeys(slots: SlotTable, slot: number, score: number, filter: VectorFilter | null, best: BestHits): void {
  if (score < best.floor) return;
  for (const key of slots.keysOf(slot)) if (filter === null || filter.has(key)) best.offer(key, score);
}

function walk(
  { space, slots, options }: SearchContext,
  graph: Graph,
  width: number,
  filter: VectorFilter | null,
  best: BestHits,
): void {
  const { pack, workAt, work, columns, columnAt, table, exactTable, lanes, finish } = space;
  pack.searchGraph({
    table,
    queries: workAt.query,
    numQueries: 1,
    links: columnAt.links,
    degree: graph.degreeOf(0),
    upper: columnAt.upper,
    upperDegree: graph.degreeOf(1),
    upperAt: columnAt.upperAt,
    entry: graph.entry,
    topLevel: graph.topLevel,
    level: 0,
    width,
    ids: workAt.ids,
    scores: workAt.scores,
    lanes,
  });
  finish();
  // Not `indexOf`, which would search the whole buffer.
  let numFound = 0;
  while (numFound < width && work.ids[numFound] !== -1) numFound++;
  if (table !== exactTable) {
    pack.distances({ ...exactTable, query: workAt.query, ids: workAt.ids, numVectors: numFound, out: workAt.scores });
    finish();
  }
  const sign = table !== exactTable && options.metric === 'l2' ? -1 : 1;
  for (let i = 0; i < numFound; i++) {
    const slot = work.ids[i]!;
    if (columns.states[slot] !== LIVE) continue;
    const nearness = work.scores[i]! * sign;
    const score = options.metric === 'cosine' ? toScore('cosine', nearness) : nearness;
    offerKeys(slots, slot, score, filter, best);
  }
}

function offerWaiting(context: SearchContext, filter: VectorFilter | null, best: BestHits): void {
  const { space, slots, waiting, options } = context;
  if (waiting.length === 0) return;
  const pairs: [number, number][] = [];
  for (const slot of waiting) {
    if (space.columns.states[slot] !== LIVE) continue;
    for (const key of slots.keysOf(slot)) if (filter === null || filter.has(key)) pairs.push([slot, key]);
  }
  scanSome(space, options.metric, pairs, best);
}

function* pairsOf(slots: SlotTable, keys: Iterable<number>): Generator<readonly [number, number]> {
  const seen = new Set<number>();
  for (const key of keys) {
    const slot = slots.slotOf(key);
    if (slot === undefined || seen.has(key)) continue;
    seen.add(key);
    yield [slot, key];
  }
}

function* passingPairs({ slots, space }: SearchContext, filter: VectorFilter): Generator<readonly [number, number]> {
  for (let slot = 0; slot < slots.end; slot++) {
    if (space.columns.states[slot] !== LIVE) continue;
    for (const key of slots.keysOf(slot)) if (filter.has(key)) yield [slot, key];
  }
}

/** Compares the query with all matches. */
function scan(context: SearchContext, { k, filter }: SearchRequest): VectorHit[] {
  const { space, slots, options } = context;
  const best = createBestHits(k);
  if (filter !== null) {
    const keys = filter.keys?.();
    const pairs = keys === undefined ? passingPairs(context, filter) : pairsOf(slots, keys);
    scanSome(space, options.metric, pairs, best);
    return best.sorted();
  }
  scanAll(space, options.metric, slots, best);
  return best.sorted();
}
