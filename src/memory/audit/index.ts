import type { Eventually } from '../common/eventually.ts';
import type { Foreground } from '../common/foreground.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import type { MemoryStore } from '../types.ts';
import { aggregateAudit, type AggregateQuery, type AuditAggregate } from './aggregate.ts';
import type { AuditArchive } from './archive.ts';
import { eraseEntries, ownedEntries, type EntryOwner, type OwnedEntry } from './erase-entries.ts';
import { exportAudit, type ExportedEntry } from './export.ts';
import { openAuditRecorder, type AuditRecorder } from './recorder.ts';
import { resolveAuditLogOptions, type AuditLogOptions } from './options.ts';
import { resolveRetention, retainAudit, type RetentionOptions, type RetentionReport } from './retention.ts';
import { searchAudit, type AuditPage, type AuditQuery } from './search.ts';
import { verifyAudit, type AuditReport } from './verify.ts';

export type { AuditArchive } from './archive.ts';
export type { ExportedEntry } from './export.ts';
export type { AuditStats } from './recorder.ts';
export type { AuditLogOptions } from './options.ts';
export type { RetentionOptions } from './retention.ts';
export type { AuditPage, FoundEntry } from './search.ts';

export interface AuditLogContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly schedule: Schedule;
  /** Default: none; entries that retention removes from the store are gone. */
  readonly archive?: AuditArchive | undefined;
  readonly log?: AuditLogOptions;
  /** Work that goes first. Default: none. */
  readonly foreground?: Foreground;
  readonly retention?: RetentionOptions | undefined;
  /** Default: it is opened with a store that can be reached. */
  readonly eventually?: Eventually | undefined;
}

/** A log of all requests whose entries form a hash chain. */
export interface AuditLog extends AuditRecorder {
  search(tenant: string, query: AuditQuery): Promise<AuditPage>;
  aggregate(tenant: string, query?: AggregateQuery): Promise<AuditAggregate>;
  /** Computes all hashes again and says where the chain breaks. */
  verify(tenant: string): Promise<AuditReport>;
  /** Archives or deletes entries that are too old or take too much space. */
  retain(tenant: string): Promise<RetentionReport>;
  /** Entries of a user and of these requests that still have their content, archived ones included. */
  owned(tenant: string, owner: EntryOwner): AsyncGenerator<OwnedEntry>;
  /** Erases the content of these entries; the chain can still be verified. */
  erase(tenant: string, owner: EntryOwner): Promise<void>;
  /** All entries in the order of the chain, archived ones included; from the start, or after a sequence number. */
  export(tenant: string, afterSequence?: number): AsyncGenerator<ExportedEntry>;
}

export async function openAuditLog(context: AuditLogContext): Promise<AuditLog> {
  const { store, services, schedule, archive = null, foreground = null } = context;
  const options = resolveAuditLogOptions(context.log);
  const retention = resolveRetention(context.retention);
  const parts = { store, services, archive, stateTenant: options.stateTenant, retention };
  const recorder = await openAuditRecorder({
    store,
    services,
    schedule,
    options,
    foreground,
    eventually: context.eventually,
  });
  return {
    ...recorder,
    search: (tenant, query) => searchAudit(store, services, tenant, query),
    aggregate: (tenant, query) => aggregateAudit(store, services, tenant, query),
    verify: (tenant) => verifyAudit(parts, tenant),
    retain: (tenant) => retainAudit(parts, tenant),
    owned: (tenant, owner) => ownedEntries(parts, tenant, owner),
    erase: (tenant, owner) => eraseEntries({ ...parts, recorder }, tenant, owner),
    export: (tenant, afterSequence) => exportAudit(parts, tenant, afterSequence),
  };
}
