import type { Foreground } from '../common/foreground.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import type { MemoryStore } from '../types.ts';
import { aggregateWitness, type AggregateQuery, type WitnessAggregate } from './aggregate.ts';
import type { WitnessArchive } from './archive.ts';
import { exportWitness, type ExportedWitness } from './export.ts';
import { openWitnessLog, type WitnessLog } from './log.ts';
import { resolveWitnessLogOptions, type WitnessLogOptions } from './options.ts';
import { resolveRetention, retainWitness, type RetentionOptions, type RetentionReport } from './retention.ts';
import { searchWitness, type WitnessPage, type WitnessQuery } from './search.ts';
import { verifyWitness, type WitnessReport } from './verify.ts';

export type { AggregateQuery, WitnessAggregate } from './aggregate.ts';
export type { WitnessArchive } from './archive.ts';
export type { ExportedWitness } from './export.ts';
export type { WitnessLog, WitnessStats } from './log.ts';
export type { WitnessLogOptions } from './options.ts';
export type { RetentionOptions, RetentionReport } from './retention.ts';
export type { WitnessGap } from './runs.ts';
export type { FoundWitness, WitnessPage, WitnessQuery } from './search.ts';
export type { WitnessReport } from './verify.ts';

export interface WitnessMemoryContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly schedule: Schedule;
  /** Default: none, and what retention takes out of the store is gone. */
  readonly archive?: WitnessArchive;
  readonly log?: WitnessLogOptions;
  /** Who goes first. Default: nobody does. */
  readonly foreground?: Foreground;
  readonly retention?: RetentionOptions;
}

/** The audit log: what is written, found, proven and let go. */
export interface WitnessMemory extends WitnessLog {
  search(tenant: string, query: WitnessQuery): Promise<WitnessPage>;
  aggregate(tenant: string, query?: AggregateQuery): Promise<WitnessAggregate>;
  verify(tenant: string): Promise<WitnessReport>;
  retain(tenant: string): Promise<RetentionReport>;
  /** Every entry there is, the archived ones too, in the order of the chain; from the start, or after one. */
  export(tenant: string, afterSequence?: number): AsyncGenerator<ExportedWitness>;
}

export async function openWitnessMemory({
  store,
  services,
  schedule,
  archive,
  log,
  retention,
  foreground,
}: WitnessMemoryContext): Promise<WitnessMemory> {
  const { stateTenant } = resolveWitnessLogOptions(log);
  const context = { store, services, archive: archive ?? null, stateTenant, retention: resolveRetention(retention) };
  const opened = await openWitnessLog({
    store,
    services,
    schedule,
    ...(log === undefined ? {} : { options: log }),
    ...(foreground === undefined ? {} : { foreground }),
  });
  return {
    ...opened,
    search: (tenant, query) => searchWitness(store, services, tenant, query),
    aggregate: (tenant, query) => aggregateWitness(store, services, tenant, query),
    verify: (tenant) => verifyWitness(context, tenant),
    retain: (tenant) => retainWitness(context, tenant),
    export: (tenant, afterSequence) => exportWitness(context, tenant, afterSequence),
  };
}
