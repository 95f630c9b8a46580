import { expect, test } from 'vitest';
import { type AlertSources, findAlerts } from './alerts.ts';
import type { LiveSample, LiveTotals } from './history.ts';

const GIB = 2 ** 30;
const NOW_MS = 1_000_000;
const QUIET: LiveTotals = { numRequests: 0, numFailed: 0, numDropped: 0 };

type Request = AlertSources['requests'][number];
const requestOf = (elapsedMs: number, firstTokenMs: number | null): Request => ({
  id: 'r',
  tenant: 't',
  asked: 'm',
  model: 'm',
  state: 'prompt',
  promptTokens: null,
  cachedTokens: null,
  numTokens: 0,
  elapsedMs,
  firstTokenMs,
});

const engineOf = (changes: { numWaiting?: number; numFreePages?: number; spill?: object }) =>
  ({
    id: 'm',
    stats: {
      numWaiting: changes.numWaiting ?? 0,
      numPages: 100,
      numFreePages: changes.numFreePages ?? 100,
      cache: { spill: changes.spill ?? null },
    },
  }) as unknown as AlertSources['engines'][number];

function alertsOf(
  changes: Partial<Omit<AlertSources, 'history'>> & {
    totals?: LiveTotals;
    free?: number | null;
    samples?: readonly LiveSample[];
  },
) {
  // prettier-ignore
  const { totals = QUIET, free = null, samples = [], ...sources } = changes;
  return findAlerts({
    requests: [],
    engines: [],
    problems: [],
    nowMs: NOW_MS,
    history: { samples: () => samples, totals: () => totals, freeDiskBytes: () => free },
    ...sources,
  });
}

test('[L5] each alert begins at its limit', () => {
  expect(alertsOf({ engines: [engineOf({ numWaiting: 15 })] })).toEqual([]);
  expect(alertsOf({ engines: [engineOf({ numWaiting: 15 }), engineOf({ numWaiting: 1 })] })).toEqual([
    { kind: 'queue_length', value: 16, limit: 16 },
  ]);
  expect(alertsOf({ requests: [requestOf(29_999, null), requestOf(90_000, 100)] })).toEqual([]);
  expect(alertsOf({ requests: [requestOf(30_000, null)] })).toEqual([
    { kind: 'first_token_wait', value: 30_000, limit: 30_000 },
  ]);
  expect(alertsOf({ engines: [engineOf({ numFreePages: 6 })] })).toEqual([]);
  expect(alertsOf({ engines: [engineOf({ numFreePages: 5 })] })).toEqual([
    { kind: 'memory_budget', model: 'm', value: 0.95, limit: 0.95 },
  ]);
  expect(alertsOf({ engines: [engineOf({ spill: { sizeBytes: 95, limitBytes: 100 } })] })).toEqual([
    { kind: 'spill_full', model: 'm', value: 0.95, limit: 0.95 },
  ]);
  const problems = (['memory', 'keys', 'keys', 'backup', 'master-key', 'spill'] as const).map((part) => ({ part }));
  expect(alertsOf({ problems })).toEqual([
    { kind: 'memory_degraded' },
    { kind: 'keys_damaged', value: 2 },
    { kind: 'backup_failed' },
    { kind: 'master_key_damaged' },
    { kind: 'spill_unavailable' },
  ]);
  expect(alertsOf({ free: GIB })).toEqual([]);
  expect(alertsOf({ free: GIB - 1 })).toEqual([{ kind: 'disk_low', value: GIB - 1, limit: GIB }]);
  expect(alertsOf({ engines: [{ id: 'm', stats: null }] })).toEqual([]);
});

test('[L5] errors and dropped audit entries count for five minutes', () => {
  const totals = { numRequests: 110, numFailed: 15, numDropped: 3 };
  const sampleAt = (atMs: number, before: LiveTotals): LiveSample => ({ atMs, totals: before, models: new Map() });
  const before = { numRequests: 100, numFailed: 14, numDropped: 1 };
  expect(alertsOf({ totals, samples: [sampleAt(NOW_MS - 300_000, before)] })).toEqual([
    { kind: 'error_share', value: 0.1, limit: 0.05, count: 10, window_ms: 300_000 },
    { kind: 'audit_dropped', value: 2, window_ms: 300_000 },
  ]);
  expect(alertsOf({ totals, samples: [sampleAt(NOW_MS - 300_000, totals)] })).toEqual([]);
  // A server that has not run that long counts from its start.
  expect(alertsOf({ totals, samples: [sampleAt(NOW_MS - 299_999, totals)] })).toMatchObject([
    { kind: 'error_share', count: 110 },
    { kind: 'audit_dropped', value: 3 },
  ]);
});
