import { z } from 'zod';
import { atOnce, type Eventually } from '../common/eventually.ts';
import { isConflict, retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import { statePut } from '../common/store-access.ts';
import { count, name, parseStored, timeMs } from '../schemas/primitives.ts';
import type { MemoryStore, PutRecord } from '../types.ts';
import type { ResolvedAuditLogOptions } from './options.ts';

/** Stored in databases: the name stays. */
const RUN_NAME = 'witness-run';
/** How long a lost run is reported. */
const LOST_RUN_MS = 90 * 86_400_000;
const MAX_RUNS = 1000;

const auditRun = z.strictObject({
  runId: name,
  openedMs: timeMs,
  /** The last batch or heartbeat. */
  lastSeenMs: timeMs,
  /** As of then. */
  numEnqueued: count,
  /** Of those: written, or refused. */
  numSettled: count,
  /** When another run found it neither closed nor alive. */
  lostMs: timeMs.nullable(),
});
type AuditRun = z.infer<typeof auditRun>;

/** Entries that a run accepted and never wrote; in each chain they follow its last entry of that run. */
export interface AuditGap {
  readonly runId: string;
  /** The missing entries were enqueued after this. */
  readonly fromMs: number;
  readonly foundMs: number;
  /** A lower bound, from the run's last sign of life. */
  readonly numKnownLost: number;
}

export function toGap({ runId, lastSeenMs, lostMs, numEnqueued, numSettled }: AuditRun): AuditGap {
  const numKnownLost = Math.max(0, numEnqueued - numSettled);
  return { runId, fromMs: lastSeenMs, foundMs: lostMs ?? lastSeenMs, numKnownLost };
}

function runPut(tenant: string, run: AuditRun, ifVersion: number): PutRecord {
  const expiresMs = run.lostMs === null ? null : run.lostMs + LOST_RUN_MS;
  return statePut({ id: run.runId, tenant, expiresMs, ifVersion }, run, {
    name: RUN_NAME,
    isOpen: run.lostMs === null,
  });
}

/** The open runs, or the lost ones. */
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
  return records.map(({ id, body, version }) => ({
    run: parseStored<AuditRun>(auditRun, body, `audit run ${id}`),
    version,
  }));
}

/** Marks open runs without a sign of life for `leaseMs` as lost and adds their gaps. Of several processes, one reports each. */
async function takeLostRuns(
  store: MemoryStore,
  tenant: string,
  { nowMs, leaseMs, gaps }: { readonly nowMs: number; readonly leaseMs: number; readonly gaps: AuditGap[] },
): Promise<void> {
  for (const { run, version } of await findRuns(store, tenant, true)) {
    // After the clock went back, a dead run may seem to live in the future.
    if (Math.abs(nowMs - run.lastSeenMs) < leaseMs) continue;
    const lost = { ...run, lostMs: nowMs };
    try {
      await store.put([runPut(tenant, lost, version)]);
      gaps.push(toGap(lost));
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}

/** The run of this log: a durable mark that it is open, renewed with each batch and deleted by `close`. */
export interface RunKeeper {
  readonly runId: string;
  /** Audit entries that earlier runs lost. */
  readonly gaps: readonly AuditGap[];
  numEnqueued: number;
  numWritten: number;
  /** Enqueued, but invalid. */
  numRefused: number;
  /** The mark for a batch of `numWriting` entries, to be written in the same call. */
  toPut(numWriting: number, isRepeated: boolean): Promise<PutRecord>;
  /** The call with that mark succeeded. */
  wasWritten(numWritten: number): void;
  /** Renews the mark while nothing is written, where a lease is set; returns a function that stops it. */
  startHeartbeat(schedule: Schedule, whenIdle: () => Promise<void> | null): () => void;
  close(): Promise<void>;
}

export async function openRun(
  store: MemoryStore,
  services: MemoryServices,
  { stateTenant: tenant, leaseMs }: Pick<ResolvedAuditLogOptions, 'stateTenant' | 'leaseMs'>,
  eventually: Eventually = atOnce,
): Promise<RunKeeper> {
  const openedMs = Math.floor(services.now());
  const gaps: AuditGap[] = [];
  await eventually(() => takeLostRuns(store, tenant, { nowMs: openedMs, leaseMs, gaps }));
  const runId = services.newId();
  let version = 0;
  const current = (numWriting: number): AuditRun => ({
    runId,
    openedMs,
    lastSeenMs: Math.max(openedMs, Math.floor(services.now())),
    numEnqueued: keeper.numEnqueued,
    numSettled: keeper.numWritten + keeper.numRefused + numWriting,
    lostMs: null,
  });
  const keeper: RunKeeper = {
    runId,
    gaps,
    numEnqueued: 0,
    numWritten: 0,
    numRefused: 0,
    async toPut(numWriting, isRepeated) {
      if (isRepeated) version = (await store.get(tenant, [runId]))[0]?.version ?? 0;
      return runPut(tenant, current(numWriting), version);
    },
    wasWritten(numWritten) {
      version++;
      keeper.numWritten += numWritten;
    },
    startHeartbeat(schedule, whenIdle) {
      if (leaseMs === 0) return () => {};
      let isStopped = false;
      let cancel = (): void => {};
      const beat = async (): Promise<void> => {
        await whenIdle();
        await store.put([await keeper.toPut(0, true)]);
        version++;
      };
      const next = (): void => {
        if (!isStopped) cancel = schedule(() => void beat().catch(() => {}).finally(next), Math.ceil(leaseMs / 3)); // prettier-ignore
      };
      next();
      return () => {
        isStopped = true;
        cancel();
      };
    },
    async close() {
      await store.delete(tenant, [runId]);
    },
  };
  await eventually(() =>
    retryConflict(async (numTries) => {
      if (numTries > 0) version = (await store.get(tenant, [runId]))[0]?.version ?? 0;
      if (version > 0) return; // a batch of entries has brought it
      await store.put([runPut(tenant, current(0), version)]);
      version = 1;
    }),
  );
  return keeper;
}
