import type { LiveRequest } from '../../runtime/requests/live-requests.ts';
import type { EngineReading } from '../metrics/engine-reading.ts';
import type { StateProblem } from '../state-problems.ts';
import type { LiveHistory, LiveTotals } from './history.ts';

/** From these values on there is an alert. Each alert names its own. */
const QUEUE_LENGTH = 16;
const FIRST_TOKEN_MS = 30_000;
/** Of the memory budget that running requests hold, and of the disk space for spilled pages. */
const FULL_SHARE = 0.95;
const ERROR_SHARE = 0.05;
/** One failure of two requests is no trend. */
const MIN_REQUESTS = 10;
const ERROR_WINDOW_MS = 300_000;
const MIN_FREE_DISK_BYTES = 1 << 30;

/** A condition that an operator should know of: a value and the limit that it passed. */
export interface Alert {
  readonly kind:
    | 'queue_length'
    | 'first_token_wait'
    | 'memory_budget'
    | 'error_share'
    | 'memory_degraded'
    | 'keys_damaged'
    | 'backup_failed'
    | 'master_key_damaged'
    | 'spill_unavailable'
    | 'audit_dropped'
    | 'spill_full'
    | 'disk_low';
  /** The model, where it is about one. */
  readonly model?: string;
  readonly value?: number;
  readonly limit?: number;
  /** Requests that `value` is a share of. */
  readonly count?: number;
  readonly window_ms?: number;
}

export interface AlertSources {
  readonly requests: readonly LiveRequest[];
  readonly engines: readonly EngineReading[];
  readonly history: Pick<LiveHistory, 'samples' | 'totals' | 'freeDiskBytes'>;
  readonly problems: readonly Pick<StateProblem, 'part'>[];
  readonly nowMs: number;
}

export function findAlerts({ requests, engines, history, problems, nowMs }: AlertSources): Alert[] {
  const alerts: Alert[] = [];
  const waiting = engines.reduce((sum, { stats }) => sum + (stats?.numWaiting ?? 0), 0);
  if (waiting >= QUEUE_LENGTH) alerts.push({ kind: 'queue_length', value: waiting, limit: QUEUE_LENGTH });
  const longestMs = Math.max(0, ...requests.map((one) => (one.firstTokenMs === null ? one.elapsedMs : 0)));
  if (longestMs >= FIRST_TOKEN_MS) {
    alerts.push({ kind: 'first_token_wait', value: Math.round(longestMs), limit: FIRST_TOKEN_MS });
  }
  for (const { id, stats } of engines) {
    if (stats === null) continue;
    // The prefix cache fills the rest of the budget on purpose: its idle pages make room.
    const heldShare = stats.numPages === 0 ? 0 : 1 - stats.numFreePages / stats.numPages;
    if (heldShare >= FULL_SHARE) alerts.push({ kind: 'memory_budget', model: id, value: heldShare, limit: FULL_SHARE });
    const { spill } = stats.cache;
    const spillShare = spill === null || spill.limitBytes === 0 ? 0 : spill.sizeBytes / spill.limitBytes;
    if (spillShare >= FULL_SHARE) alerts.push({ kind: 'spill_full', model: id, value: spillShare, limit: FULL_SHARE });
  }
  const { numRequests, numFailed, numDropped } = recentTotals(history, nowMs);
  const errorShare = numFailed / numRequests;
  if (numRequests >= MIN_REQUESTS && errorShare >= ERROR_SHARE) {
    alerts.push({
      kind: 'error_share',
      value: errorShare,
      limit: ERROR_SHARE,
      count: numRequests,
      window_ms: ERROR_WINDOW_MS,
    });
  }
  const numKeys = problems.filter(({ part }) => part === 'keys').length;
  if (problems.some(({ part }) => part === 'memory')) alerts.push({ kind: 'memory_degraded' });
  if (numKeys > 0) alerts.push({ kind: 'keys_damaged', value: numKeys });
  if (problems.some(({ part }) => part === 'backup')) alerts.push({ kind: 'backup_failed' });
  if (problems.some(({ part }) => part === 'master-key')) alerts.push({ kind: 'master_key_damaged' });
  if (problems.some(({ part }) => part === 'spill')) alerts.push({ kind: 'spill_unavailable' });
  if (numDropped > 0) alerts.push({ kind: 'audit_dropped', value: numDropped, window_ms: ERROR_WINDOW_MS });
  const free = history.freeDiskBytes();
  if (free !== null && free < MIN_FREE_DISK_BYTES) {
    alerts.push({ kind: 'disk_low', value: free, limit: MIN_FREE_DISK_BYTES });
  }
  return alerts;
}

/** Totals of the last minutes: since the newest sample that is older, or since the start. */
function recentTotals(history: Pick<LiveHistory, 'samples' | 'totals'>, nowMs: number): LiveTotals {
  const now = history.totals();
  const before = history.samples().findLast(({ atMs }) => atMs <= nowMs - ERROR_WINDOW_MS)?.totals;
  return {
    numRequests: now.numRequests - (before?.numRequests ?? 0),
    numFailed: now.numFailed - (before?.numFailed ?? 0),
    numDropped: now.numDropped - (before?.numDropped ?? 0),
  };
}
