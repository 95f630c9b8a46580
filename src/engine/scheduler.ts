import type { PagePool } from '../kv-cache/page-pool.ts';
import { numBehind, type Sequence } from './sequence.ts';
import type { Schedule, ScheduledRows } from './types.ts';

/** Both lists in the order of arrival, everything running older than everything waiting. `schedule` moves between them. */
export interface SchedulerState {
  readonly pool: PagePool;
  readonly running: Sequence[];
  readonly waiting: Sequence[];
  readonly maxBatchTokens: number;
  /** At most maxBatchTokens: then one-token rows can never starve a longer catch-up. */
  readonly maxRunning: number;
}

/** Decides the next step and takes the pages for it. */
export function schedule(state: SchedulerState): Schedule {
  const numRows = shareBatch(state.running, state.maxBatchTokens);
  const preemptedIds = reservePages(state, numRows);
  const rows: ScheduledRows[] = [];
  let budget = state.maxBatchTokens;
  for (const sequence of state.running) {
    const count = numRows.get(sequence)!;
    if (count > 0) rows.push(rowsOf(sequence, count));
    budget -= count;
  }
  const admittedIds: number[] = [];
  while (budget > 0 && canAdmit(state)) {
    const sequence = state.waiting.shift()!;
    sequence.pages.growTo(sequence.tokenIds.length + 1);
    state.running.push(sequence);
    admittedIds.push(sequence.request.id);
    const count = Math.min(numBehind(sequence), budget);
    rows.push(rowsOf(sequence, count));
    budget -= count;
  }
  return { rows, admittedIds, preemptedIds };
}

/** Rows for each running sequence: one-token rows first, for they are somebody's next word; then the catch-ups. */
function shareBatch(running: readonly Sequence[], maxBatchTokens: number): Map<Sequence, number> {
  const numRows = new Map<Sequence, number>();
  let budget = maxBatchTokens;
  for (const isShort of [true, false]) {
    for (const sequence of running) {
      const behind = numBehind(sequence);
      if ((behind === 1) !== isShort) continue;
      const count = Math.min(behind, budget);
      numRows.set(sequence, count);
      budget -= count;
    }
  }
  return numRows;
}

/**
 * Takes the pages these rows need, oldest sequence first. A victim is always younger than the sequence in need, or that
 * sequence itself, so that nothing already reserved is taken back.
 */
function reservePages(state: SchedulerState, numRows: ReadonlyMap<Sequence, number>): number[] {
  const { running, waiting } = state;
  const preemptedIds: number[] = [];
  for (let i = 0; i < running.length; i++) {
    const sequence = running[i]!;
    const numTokens = sequence.numComputed + numRows.get(sequence)!;
    while (i < running.length && !sequence.pages.canGrowTo(numTokens)) {
      const victim = running.pop()!;
      victim.pages.release();
      victim.numComputed = 0;
      waiting.unshift(victim);
      preemptedIds.push(victim.request.id);
    }
    if (i < running.length) sequence.pages.growTo(numTokens);
  }
  return preemptedIds;
}

/** One spare page for every running sequence, or the newcomer would be preempted at their next page border. */
function canAdmit({ pool, running, waiting, maxRunning }: SchedulerState): boolean {
  const next = waiting[0];
  if (next === undefined || running.length >= maxRunning) return false;
  return pool.canAllocate(next.pages.numMissingPages(next.tokenIds.length + 1) + running.length);
}

function rowsOf(sequence: Sequence, numRows: number): ScheduledRows {
  const start = sequence.numComputed;
  return { id: sequence.request.id, start, numRows, isCaughtUp: start + numRows === sequence.tokenIds.length };
}
