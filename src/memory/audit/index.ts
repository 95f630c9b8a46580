import type { Foreground } from '../common/foreground.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import type { MemoryStore } from '../types.ts';
import { aggregateAudit, type AggregateQuery, type AuditAggregate } from './aggregate.ts';
import type { AuditArchive } from './archive.ts';
import { exportAudit, type ExportedEntry } from './export.ts';
import { openAuditRecorder, type AuditRecorder } from './recorder.ts';
import { resolveAuditLogOptions, type AuditLogOptions } from './options.ts';
import { resolveRetention, retainAudit, type RetentionOptions, type RetentionReport } from './retention.ts';
import { searchAudit, type AuditPage, type AuditQuery } from './search.ts';
import { verifyAudit, type AuditReport } from './verify.ts';

export type { AggregateQuery, AuditAggregate } from './aggregate.ts';
export type { AuditArchive } from './archive.ts';
export type { ExportedEntry } from './export.ts';
export type { AuditRecorder, AuditStats } from './recorder.ts';
export type { AuditLogOptions } from './options.ts';
export type { RetentionOptions, RetentionReport } from './retention.ts';
export type { AuditGap } from './runs.ts';
export type { FoundEntry, AuditPage, AuditQuery } from './search.ts';
export type { AuditReport } from './verify.ts';

export interface AuditLogContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly schedule: Schedule;
  /** Default: none, and what retention takes out of the store is gone. */
  readonly archive?: AuditArchive;
  readonly log?: AuditLogOptions;
  /** Who goes first. Default: nobody does. */
  readonly foreground?: Foreground;
  readonly retention?: RetentionOptions;
}

/** The audit log: what is written, found, proven and let go. */
export interface AuditLog extends AuditRecorder {
  search(tenant: string, query: AuditQuery): Promise<AuditPage>;
  aggregate(tenant: string, query?: AggregateQuery): Promise<AuditAggregate>;
  verify(tenant: string): Promise<AuditReport>;
  retain(tenant: string): Promise<RetentionReport>;
  /** Every entry there is, the archived ones too, in the order of the chain; from the start, or after one. */
  export(tenant: string, afterSequence?: number): AsyncGenerator<ExportedEntry>;
}

export async function openAuditLog({
  store,
  services,
  schedule,
  archive,
  log,
  retention,
  foreground,
}: AuditLogContext): Promise<AuditLog> {
  const { stateTenant } = resolveAuditLogOptions(log);
  const context = { store, services, archive: archive ?? null, stateTenant, retention: resolveRetention(retention) };
  const opened = await openAuditRecorder({
    store,
    services,
    schedule,
    ...(log === undefined ? {} : { options: log }),
    ...(foreground === undefined ? {} : { foreground }),
  });
  return {
    ...opened,
    search: (tenant, query) => searchAudit(store, services, tenant, query),
    aggregate: (tenant, query) => aggregateAudit(store, services, tenant, query),
    verify: (tenant) => verifyAudit(context, tenant),
    retain: (tenant) => retainAudit(context, tenant),
    export: (tenant, afterSequence) => exportAudit(context, tenant, afterSequence),
  };
}
