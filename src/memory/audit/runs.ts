import { z } from 'zod';
import { isConflict } from '../common/retry-conflict.ts';
import { count, name, parseStored, timeMs } from '../schemas/primitives.ts';
import type { JsonValue, MemoryRecord, MemoryStore, PutRecord } from '../types.ts';

/** Stored in databases: the name stays. */
const RUN_NAME = 'witness-run';
/** A lost run is told about for so long. */
const LOST_RUN_MS = 90 * 86_400_000;
const MAX_RUNS = 1000;

const auditRun = z.strictObject({
  runId: name,
  openedMs: timeMs,
  /** The last sign of life: a batch written, or a heartbeat. */
  lastSeenMs: timeMs,
  /** As of then. */
  numEnqueued: count,
  /** Of those: written, or given up because nothing could be made of them. */
  numSettled: count,
  /** When another run found it neither closed nor alive. */
  lostMs: timeMs.nullable(),
});
export type AuditRun = z.infer<typeof auditRun>;

/** Entries that a run took and never wrote; of each chain they are the last of that run. */
export interface AuditGap {
  readonly runId: string;
  /** What is missing was enqueued after this. */
  readonly fromMs: number;
  readonly foundMs: number;
  /** At least so many, by the run's last sign of life; what came later nobody knows. */
  readonly numKnownLost: number;
}

export function toGap(run: AuditRun): AuditGap {
  const { runId, lastSeenMs, lostMs, numEnqueued, numSettled } = run;
  return {
    runId,
    fromMs: lastSeenMs,
    foundMs: lostMs ?? lastSeenMs,
    numKnownLost: Math.max(0, numEnqueued - numSettled),
  };
}

export function runPut(tenant: string, run: AuditRun, ifVersion: number): PutRecord {
  return {
    id: run.runId,
    tenant,
    kind: 'state',
    expiresMs: run.lostMs === null ? null : run.lostMs + LOST_RUN_MS,
    fields: { name: RUN_NAME, isOpen: run.lostMs === null },
    body: run as unknown as JsonValue,
    vector: null,
    space: null,
    ifVersion,
  };
}

const fromRecord = (record: MemoryRecord): AuditRun =>
  parseStored<AuditRun>(auditRun, record.body, `audit run ${record.id}`);

/** The runs that are open, or that were found lost. */
export async function findRuns(
  store: MemoryStore,
  tenant: string,
  isOpen: boolean,
): Promise<{ run: AuditRun; version: number }[]> {
  const filter = {
    fields: [
      { field: 'name', is: '=', value: RUN_NAME },
      { field: 'isOpen', is: '=', value: isOpen },
    ],
  } as const;
  const { records } = await store.find(tenant, { kinds: ['state'], filter, order: 'newest', limit: MAX_RUNS });
  return records.map((record) => ({ run: fromRecord(record), version: record.version }));
}

export interface RunCheck {
  readonly store: MemoryStore;
  readonly tenant: string;
  readonly nowMs: number;
  /** A run without a sign of life for longer is lost. */
  readonly leaseMs: number;
}

/** Marks the open runs that are over their lease as lost, and says what that lost. One of several that look reports it. */
export async function takeLostRuns({ store, tenant, nowMs, leaseMs }: RunCheck): Promise<AuditGap[]> {
  const gaps: AuditGap[] = [];
  for (const { run, version } of await findRuns(store, tenant, true)) {
    // A clock that went back makes a run look as if it lived in the future: that one is not alive either.
    if (Math.abs(nowMs - run.lastSeenMs) < leaseMs) continue;
    const lost = { ...run, lostMs: nowMs };
    try {
      await store.put([runPut(tenant, lost, version)]);
      gaps.push(toGap(lost));
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  return gaps;
}
