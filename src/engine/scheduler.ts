import type { KvCache } from '../kv-cache/kv-cache.ts';
import { countTenants, findMostSlots, hasFewSlots, SLICE_TOKENS } from './fair-slots.ts';
import { numBehind, type Sequence } from './sequence.ts';
import type { TenantShares } from './tenant-shares.ts';
import type { Schedule, ScheduledRows } from './types.ts';
import type { WaitingList } from './waiting-list.ts';

/** `schedule` moves sequences between the two lists. */
export interface SchedulerState {
  readonly cache: Pick<KvCache, 'maxNewTokens' | 'keepsPrefixes'>;
  readonly pageTokens: number;
  /** By rank: higher priority first, then in the order they first ran. */
  readonly running: Sequence[];
  readonly waiting: WaitingList;
  readonly shares: TenantShares;
  readonly maxBatchTokens: number;
  /** At most maxBatchTokens, so that one-token rows can never starve a longer catch-up. */
  readonly maxRunning: number;
  readonly maxRunningPerTenant: number;
  /** Encoders compute a sequence in one step or not yet. */
  readonly isWhole: boolean;
  /** Waiting this long raises the priority by one. */
  readonly agingMs: number;
  /** Sequences that have run so far. */
  numTurns: number;
}

/** Plans the next step and allocates its pages. The plan is empty only if the last running sequence lost its pages. */
export function schedule(state: SchedulerState, nowMs: number): Schedule {
  const order = (sequence: Sequence): number => priorityOf(state, sequence, nowMs);
  const preemptedIds: number[] = [];
  const admittedIds: number[] = [];
  const { running, maxRunning } = state;
  admitUrgent(state, order, admittedIds, preemptedIds);
  admitFair(state, order, admittedIds, preemptedIds);
  const numRows = shareBatch(state);
  reservePages(state, numRows, preemptedIds);
  const rows: ScheduledRows[] = [];
  let budget = state.maxBatchTokens;
  for (const sequence of running) {
    const count = numRows.get(sequence)!;
    if (count > 0) rows.push(rowsOf(sequence, count));
    budget -= count;
  }
  // A sequence preempted in this step would only take its pages back.
  const canAdmit = (): boolean =>
    budget > 0 && running.length < maxRunning && running[0]?.needsAllPages !== true && preemptedIds.length === 0;
  const isCandidate = (sequence: Sequence): boolean => canAdmit() && !hasFullTenant(state, sequence);
  for (const sequence of canAdmit() ? inOrder(state, order, isCandidate) : []) {
    if (waitsForPrefix(state, sequence, order(sequence))) continue;
    if (state.isWhole && numBehind(sequence) > budget) break;
    // No request overtakes one that waits for memory, or a large one would wait for ever.
    if (!admit(state, sequence, order(sequence), admittedIds)) break;
    const count = Math.min(numBehind(sequence), budget);
    rows.push(rowsOf(sequence, count));
    budget -= count;
  }
  return { rows, admittedIds, preemptedIds };
}

/** Higher goes first. Waiting raises it, also after a preemption; the gain is kept while running. */
function priorityOf({ agingMs }: SchedulerState, { request, turn, addedAtMs }: Sequence, nowMs: number): number {
  return Math.max(turn?.priority ?? -Infinity, request.priority + Math.floor((nowMs - addedAtMs) / agingMs));
}

/** Compares base priorities: with aged ones, any queue would cut long answers short. */
function isUrgent(running: readonly Sequence[], { request }: Sequence): boolean {
  return running.length > 0 && running.at(-1)!.turn!.priority < request.priority;
}

function inOrder(
  { waiting, shares }: SchedulerState,
  priorityOf: (sequence: Sequence) => number,
  isCandidate: (sequence: Sequence) => boolean,
): Iterable<Sequence> {
  return waiting.inOrder({ priorityOf, servedTokens: shares.servedTokens, isCandidate });
}

/** Requests of higher priority preempt running ones where slots or pages are short. */
function admitUrgent(
  state: SchedulerState,
  order: (sequence: Sequence) => number,
  admittedIds: number[],
  preemptedIds: number[],
): void {
  const { running, maxRunning } = state;
  const isCandidate = (sequence: Sequence): boolean => isUrgent(running, sequence) && !hasFullTenant(state, sequence);
  for (const sequence of inOrder(state, order, isCandidate)) {
    if (waitsForPrefix(state, sequence, order(sequence))) continue;
    for (;;) {
      if (running.length < maxRunning && admit(state, sequence, order(sequence), admittedIds)) break;
      // No other request may overtake it.
      if (!isUrgent(running, sequence)) return;
      preempt(state, preemptedIds);
    }
  }
}

/** Requests of tenants that run at least two fewer sequences go first, preempting the others if needed. */
function admitFair(
  state: SchedulerState,
  order: (sequence: Sequence) => number,
  admittedIds: number[],
  preemptedIds: number[],
): void {
  const { running, maxRunning } = state;
  let counts = countTenants(running);
  if (Math.max(0, ...counts.values()) < 2) return; // no tenant has one to spare
  /** Their other requests find no victim either. */
  const refused = new Set<string>();
  const keyOf = ({ request }: Sequence): string => `${request.priority} ${request.tenant}`;
  const isCandidate = (sequence: Sequence): boolean =>
    hasFewSlots(counts, sequence) && !hasFullTenant(state, sequence) && !refused.has(keyOf(sequence));
  for (const sequence of inOrder(state, order, isCandidate)) {
    if (sequence.hasNoRoom || waitsForPrefix(state, sequence, order(sequence))) continue;
    while (running.length >= maxRunning || !admit(state, sequence, order(sequence), admittedIds)) {
      const place = findMostSlots(running, sequence);
      // The other candidates are within their slices, of higher priority or too few: it waits its turn.
      if (place < 0) {
        refused.add(keyOf(sequence));
        break;
      }
      const victim = running[place]!;
      preempt(state, preemptedIds, place);
      victim.sliceEnd = victim.tokenIds.length + SLICE_TOKENS;
      sequence.hasNoRoom = true;
    }
    if (running.includes(sequence)) sequence.hasNoRoom = false;
    counts = countTenants(running);
  }
}

function hasFullTenant({ running, maxRunningPerTenant }: SchedulerState, { request }: Sequence): boolean {
  if (maxRunningPerTenant === Infinity) return false;
  let count = 0;
  for (const other of running) if (other.request.tenant === request.tenant) count++;
  return count >= maxRunningPerTenant;
}

/** Whether a sequence of the same or higher rank is computing a page this one can share in a step or two. */
function waitsForPrefix({ cache, running, pageTokens }: SchedulerState, sequence: Sequence, priority: number): boolean {
  const { request, pageHashes, tokenIds } = sequence;
  if (!cache.keepsPrefixes || !request.cachePrefix || sequence.turn !== null) return false;
  return running.some((other) => {
    if (!other.request.cachePrefix || numBehind(other) <= 1 || other.turn!.priority < priority) return false;
    const { tenant, adapterHash } = other.request;
    if (tenant !== request.tenant || adapterHash !== request.adapterHash) return false;
    const next = Math.floor(other.numComputed / pageTokens);
    // The page must end before the last token, which is always computed.
    if (next >= other.pageHashes.length || (next + 1) * pageTokens >= tokenIds.length) return false;
    return other.pageHashes[next] === pageHashes[next];
  });
}

/** One spare page per running sequence, or the new one would be preempted at their next page boundary. */
function admit(state: SchedulerState, sequence: Sequence, priority: number, admittedIds: number[]): boolean {
  const { running, waiting, cache } = state;
  const { tokenIds, cacheKeys, pages, pooler } = sequence;
  // Embeddings need no page for a next token; with a full-length sequence there would be none.
  const maxNew = pooler === null ? cache.maxNewTokens : Math.min(cache.maxNewTokens, tokenIds.length);
  const numFound = pages.attach(cacheKeys, maxNew, running.length);
  if (numFound === null) return false;
  waiting.remove(sequence);
  sequence.numComputed = numFound;
  sequence.numCached ??= numFound;
  const turn = { priority, order: sequence.turn?.order ?? state.numTurns++ };
  sequence.turn = turn;
  const place = running.findIndex(
    (other) =>
      other.turn!.priority < turn.priority ||
      (other.turn!.priority === turn.priority && other.turn!.order > turn.order),
  );
  running.splice(place < 0 ? running.length : place, 0, sequence);
  admittedIds.push(sequence.request.id);
  return true;
}

/** Preempts the last in rank, or the one at `place`; it resumes from its pages left in memory or on disk. */
function preempt({ running, waiting }: SchedulerState, preemptedIds: number[], place = running.length - 1): void {
  const [victim] = running.splice(place, 1) as [Sequence];
  victim.pages.release(victim.cacheKeys, victim.numComputed);
  victim.numComputed = 0;
  waiting.add(victim);
  preemptedIds.push(victim.request.id);
}

/**
 * Rows per running sequence: one-token rows first, because a user waits for them; then catch-ups by priority and
 * least-served tenant.
 */
function shareBatch({ running, shares, maxBatchTokens }: SchedulerState): Map<Sequence, number> {
  const numRows = new Map<Sequence, number>();
  let budget = maxBatchTokens;
  const give = (sequence: Sequence): void => {
    const count = Math.min(numBehind(sequence), budget);
    numRows.set(sequence, count);
    budget -= count;
  };
  for (const sequence of running) {
    if (numBehind(sequence) === 1) give(sequence);
    else if (numBehind(sequence) === 0) numRows.set(sequence, 0); // its next token is chosen in another thread
  }
  const catchUps = running.filter((sequence) => numBehind(sequence) > 1);
  catchUps.sort(
    (a, b) =>
      b.turn!.priority - a.turn!.priority ||
      shares.servedTokens(a.request.tenant) - shares.servedTokens(b.request.tenant) ||
      a.turn!.order - b.turn!.order,
  );
  for (const sequence of catchUps) give(sequence);
  return numRows;
}

/**
 * Allocates the pages of these rows, highest rank first. A victim always ranks below the sequence in need or is that
 * sequence, so nothing reserved is taken back.
 */
function reservePages(state: SchedulerState, numRows: ReadonlyMap<Sequence, number>, preemptedIds: number[]): void {
  const { running } = state;
  for (let i = 0; i < running.length; i++) {
    const sequence = running[i]!;
    const numTokens = sequence.numComputed + numRows.get(sequence)!;
    while (i < running.length && !sequence.pages.tryGrowTo(numTokens)) {
      // It fits alone, but others kept its pages from being packed: from now on it runs alone.
      if (running.length === 1) sequence.needsAllPages = true;
      preempt(state, preemptedIds);
    }
  }
}

function rowsOf(sequence: Sequence, numRows: number): ScheduledRows {
  const { request, pooler, numComputed: start } = sequence;
  const end = start + numRows;
  if (pooler !== null)
    return { id: request.id, start, numRows, isCaughtUp: false, hidden: pooler.neededRows(start, end) };
  const isCaughtUp = end === sequence.tokenIds.length;
  const rows = { id: request.id, start, numRows, isCaughtUp };
  return isCaughtUp && request.examiner !== undefined ? { ...rows, hidden: { first: end - 1, numRows: 1 } } : rows;
}
