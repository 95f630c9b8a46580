import { z } from 'zod';
import type { MemoryServices } from '../common/services.ts';
import { parseWith } from '../schemas/primitives.ts';
import { AUDIT_KIND, type FieldValue, type MemoryRecord, type MemoryStore } from '../types.ts';
import { readHead } from './head.ts';
import { allRatings, hasBounds, isWithin } from './ratings.ts';
import { toRecordFilter, auditFilter } from './search.ts';

export const aggregateQuery = auditFilter.extend({
  /** Width of the trend's buckets. Default: one hour. */
  bucketMs: z
    .int()
    .min(1000)
    .max(366 * 86_400_000)
    .default(3_600_000),
  /** Entries that are looked at, the newest first. */
  maxEntries: z.int().min(1).max(1_000_000).default(100_000),
});
export type AggregateQuery = z.input<typeof aggregateQuery>;

/** Exact, by nearest rank: each is a value that occurred. */
export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly count: number;
}

export interface AuditSummary {
  readonly count: number;
  readonly numErrors: number;
  /** Null of nothing. */
  readonly errorRate: number | null;
  /** Of those that were rated, or written with a quality. */
  readonly meanQuality: number | null;
  readonly numRated: number;
  readonly totalMs: Percentiles | null;
  readonly ttftMs: Percentiles | null;
}

export interface AuditTrend extends AuditSummary {
  readonly startMs: number;
}

export interface AuditAggregate extends AuditSummary {
  /** Buckets with entries, the oldest first. */
  readonly trend: readonly AuditTrend[];
  /** By number of entries. */
  readonly models: readonly {
    readonly model: string;
    readonly count: number;
    readonly share: number;
    readonly numErrors: number;
  }[];
  readonly errors: readonly { readonly code: string; readonly count: number }[];
  /** False: there are more entries than `maxEntries`, and the oldest of them were left out. */
  readonly isComplete: boolean;
}

type Row = Readonly<Record<string, FieldValue>>;

export function percentiles(values: readonly number[]): Percentiles | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
  return { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), max: at(1), count: sorted.length };
}

const numbers = (rows: readonly Row[], field: string): number[] =>
  rows.map((row) => row[field]).filter((value) => typeof value === 'number');

function summarize(rows: readonly Row[]): AuditSummary {
  const numErrors = rows.filter((row) => row['hasError'] === true).length;
  const qualities = numbers(rows, 'quality');
  return {
    count: rows.length,
    numErrors,
    errorRate: rows.length === 0 ? null : numErrors / rows.length,
    numRated: qualities.length,
    meanQuality: qualities.length === 0 ? null : qualities.reduce((sum, value) => sum + value, 0) / qualities.length,
    totalMs: percentiles(numbers(rows, 'totalMs')),
    ttftMs: percentiles(numbers(rows, 'ttftMs')),
  };
}

function groupBy<K>(records: readonly MemoryRecord[], keyOf: (record: MemoryRecord) => K): Map<K, Row[]> {
  const groups = new Map<K, Row[]>();
  for (const record of records) {
    const key = keyOf(record);
    const rows = groups.get(key);
    if (rows === undefined) groups.set(key, [record.fields]);
    else rows.push(record.fields);
  }
  return groups;
}

const byCount = (a: { count: number }, b: { count: number }): number => b.count - a.count;

/** Counts, rates, percentiles and trends over the entries that pass. */
export async function aggregateAudit(
  store: MemoryStore,
  services: MemoryServices,
  tenant: string,
  given: AggregateQuery = {},
): Promise<AuditAggregate> {
  const query = parseWith<z.output<typeof aggregateQuery>>(aggregateQuery as never, given, 'audit aggregate');
  const { head } = await readHead(store, services.sha256, tenant);
  const filter = toRecordFilter(query, head.sequence);
  const records: Pick<MemoryRecord, 'fields' | 'createdMs'>[] = [];
  let after: string | null = null;
  do {
    const limit = Math.min(1000, query.maxEntries - records.length);
    const page = await store.find(tenant, {
      kinds: [AUDIT_KIND],
      filter,
      order: 'newest',
      limit,
      ...(after === null ? {} : { after }),
    });
    // Only what is counted is kept: texts and vectors of 100 000 entries would be a gigabyte.
    for (const { fields, createdMs } of page.records) records.push({ fields, createdMs });
    after = page.next;
  } while (after !== null && records.length < query.maxEntries);
  const ratings = await allRatings(store, tenant);
  // What was said since counts more than what an entry was written with.
  const rated = records.map(({ fields, createdMs }) => {
    const quality = ratings.get(String(fields['requestId']))?.quality ?? fields['quality'] ?? null;
    return { createdMs, fields: { ...fields, quality } };
  });
  const isMeant = (row: Row): boolean => !hasBounds(query) || isWithin(row['quality'] as number | null, query);
  const all = rated.filter(({ fields }) => isMeant(fields)) as unknown as MemoryRecord[];
  const trend = [...groupBy(all, ({ createdMs }) => Math.floor(createdMs / query.bucketMs) * query.bucketMs)]
    .map(([startMs, rows]) => ({ startMs, ...summarize(rows) }))
    .sort((a, b) => a.startMs - b.startMs);
  const models = [...groupBy(all, ({ fields }) => String(fields['model']))].map(([model, rows]) => {
    const { count, numErrors } = summarize(rows);
    return { model, count, share: count / all.length, numErrors };
  });
  const failed = all.filter(({ fields }) => fields['hasError'] === true);
  const errors = [...groupBy(failed, ({ fields }) => String(fields['errorCode']))].map(([code, rows]) => ({
    code,
    count: rows.length,
  }));
  return {
    ...summarize(all.map(({ fields }) => fields)),
    trend,
    models: models.sort(byCount),
    errors: errors.sort(byCount),
    isComplete: after === null,
  };
}
