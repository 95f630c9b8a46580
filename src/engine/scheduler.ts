import type { KvCache } from '../kv-cache/kv-cache.ts';
import { numBehind, type Sequence } from './sequence.ts';
import type { TenantShares } from './tenant-shares.ts';
import type { Schedule, ScheduledRows } from './types.ts';

/** `schedule` moves sequences between the two lists. */
export interface SchedulerState {
  readonly cache: Pick<KvCache, 'maxNewTokens'>;
  readonly pageTokens: number;
  /** By rank: higher priority first, then in the order they first ran. */
  readonly running: Sequence[];
  readonly waiting: Sequence[];
  readonly shares: TenantShares;
  readonly maxBatchTokens: number;
  /** At most maxBatchTokens: then one-token rows can never starve a longer catch-up. */
  readonly maxRunning: number;
  readonly maxRunningPerTenant: number;
  /** Waiting this long counts as one more priority. */
  readonly agingMs: number;
  /** Sequences that have run so far. */
  numTurns: number;
}

/** Decides the next step and takes the pages for it. */
export function schedule(state: SchedulerState, nowMs: number): Schedule {
  const order = (sequence: Sequence): number => priorityOf(state, sequence, nowMs);
  const preemptedIds: number[] = [];
  const admittedIds: number[] = [];
  orderWaiting(state, order);
  admitUrgent(state, order, admittedIds, preemptedIds);
  const numRows = shareBatch(state);
  reservePages(state, numRows, preemptedIds);
  const rows: ScheduledRows[] = [];
  let budget = state.maxBatchTokens;
  for (const sequence of state.running) {
    const count = numRows.get(sequence)!;
    if (count > 0) rows.push(rowsOf(sequence, count));
    budget -= count;
  }
  // Who was just preempted would only take back what was taken.
  for (const sequence of preemptedIds.length > 0 ? [] : state.waiting.slice()) {
    if (budget === 0 || state.running.length >= state.maxRunning) break;
    if (hasFullTenant(state, sequence) || waitsForPrefix(state, sequence)) continue;
    // Nobody overtakes a request that waits for memory, or a large one would wait for ever.
    if (!admit(state, sequence, order(sequence), admittedIds)) break;
    const count = Math.min(numBehind(sequence), budget);
    rows.push(rowsOf(sequence, count));
    budget -= count;
  }
  return { rows, admittedIds, preemptedIds };
}

/** A higher number goes first. Fixed once a sequence has run: what it has earned by waiting it keeps. */
function priorityOf({ agingMs }: SchedulerState, { request, turn, addedAtMs }: Sequence, nowMs: number): number {
  return turn?.priority ?? request.priority + Math.floor((nowMs - addedAtMs) / agingMs);
}

/** By priority; then those that have already run; then the tenant that was served least; then who came first. */
function orderWaiting({ waiting, shares }: SchedulerState, priority: (sequence: Sequence) => number): void {
  waiting.sort(
    (a, b) =>
      priority(b) - priority(a) ||
      (a.turn?.order ?? Infinity) - (b.turn?.order ?? Infinity) ||
      shares.servedTokens(a.request.tenant) - shares.servedTokens(b.request.tenant) ||
      a.request.id - b.request.id,
  );
}

/** Requests of higher priority than somebody running take that one's place when there is no other. */
function admitUrgent(
  state: SchedulerState,
  priority: (sequence: Sequence) => number,
  admittedIds: number[],
  preemptedIds: number[],
): void {
  const { running, maxRunning } = state;
  for (const sequence of state.waiting.slice()) {
    const last = running.at(-1);
    if (last === undefined || priority(sequence) <= priority(last)) return;
    if (hasFullTenant(state, sequence) || waitsForPrefix(state, sequence)) continue;
    while (running.length > 0 && priority(running.at(-1)!) < priority(sequence)) {
      if (running.length < maxRunning && admit(state, sequence, priority(sequence), admittedIds)) break;
      preempt(state, preemptedIds);
    }
    if (sequence.pages.pages.length > 0) continue;
    if (running.length >= maxRunning || !admit(state, sequence, priority(sequence), admittedIds)) return;
  }
}

function hasFullTenant({ running, maxRunningPerTenant }: SchedulerState, { request }: Sequence): boolean {
  let count = 0;
  for (const other of running) if (other.request.tenant === request.tenant) count++;
  return count >= maxRunningPerTenant;
}

/** Somebody is computing a page this one could use: in a step or two it need not be computed again. */
function waitsForPrefix({ running, pageTokens }: SchedulerState, sequence: Sequence): boolean {
  const { request, pageHashes, tokenIds } = sequence;
  if (!request.cachePrefix || sequence.turn !== null) return false;
  return running.some((other) => {
    if (!other.request.cachePrefix || numBehind(other) <= 1) return false;
    const { tenant, adapterHash } = other.request;
    if (tenant !== request.tenant || adapterHash !== request.adapterHash) return false;
    const next = Math.floor(other.numComputed / pageTokens);
    // The page must end before the last token, which is computed in any case.
    if (next >= other.pageHashes.length || (next + 1) * pageTokens >= tokenIds.length) return false;
    return other.pageHashes[next] === pageHashes[next];
  });
}

/** One spare page for every running sequence, or the newcomer would be preempted at their next page border. */
function admit(state: SchedulerState, sequence: Sequence, priority: number, admittedIds: number[]): boolean {
  const { running, waiting, cache } = state;
  const { tokenIds, pages } = sequence;
  const numFound = pages.attach(tokenIds, cache.maxNewTokens, running.length);
  if (numFound === null) return false;
  waiting.splice(waiting.indexOf(sequence), 1);
  sequence.numComputed = numFound;
  sequence.numCached ??= numFound;
  sequence.turn ??= { priority, order: state.numTurns++ };
  const { turn } = sequence;
  const place = running.findIndex(
    (other) =>
      other.turn!.priority < turn.priority ||
      (other.turn!.priority === turn.priority && other.turn!.order > turn.order),
  );
  running.splice(place < 0 ? running.length : place, 0, sequence);
  admittedIds.push(sequence.request.id);
  return true;
}

/** The last in rank gives up its pages, and comes back to what is left of them in memory or on disk. */
function preempt({ running, waiting }: SchedulerState, preemptedIds: number[]): void {
  const victim = running.pop()!;
  victim.pages.release(victim.tokenIds, victim.numComputed);
  victim.numComputed = 0;
  waiting.unshift(victim);
  preemptedIds.push(victim.request.id);
}

/**
 * Rows for each running sequence: one-token rows first, for they are somebody's next word; then the catch-ups, of higher priority and of
 * less served tenants first.
 */
function shareBatch({ running, shares, maxBatchTokens }: SchedulerState): Map<Sequence, number> {
  const numRows = new Map<Sequence, number>();
  let budget = maxBatchTokens;
  const give = (sequence: Sequence): void => {
    const count = Math.min(numBehind(sequence), budget);
    numRows.set(sequence, count);
    budget -= count;
  };
  for (const sequence of running) if (numBehind(sequence) === 1) give(sequence);
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
 * Takes the pages these rows need, highest rank first. A victim always ranks below the sequence in need, or is that
 * sequence itself, so that nothing already reserved is taken back.
 */
function reservePages(state: SchedulerState, numRows: ReadonlyMap<Sequence, number>, preemptedIds: number[]): void {
  const { running } = state;
  for (let i = 0; i < running.length; i++) {
    const sequence = running[i]!;
    const numTokens = sequence.numComputed + numRows.get(sequence)!;
    while (i < running.length && !sequence.pages.tryGrowTo(numTokens)) preempt(state, preemptedIds);
  }
}

function rowsOf(sequence: Sequence, numRows: number): ScheduledRows {
  const start = sequence.numComputed;
  return { id: sequence.request.id, start, numRows, isCaughtUp: start + numRows === sequence.tokenIds.length };
}
