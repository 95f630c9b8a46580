import { z } from 'zod';
import { groupBy } from '../common/group-by.ts';
import type { MemoryServices } from '../common/services.ts';
import { readPages } from '../common/store-access.ts';
import { ERASURE_MODEL, TOOL_MODEL_PREFIX } from '../schemas/audit.ts';
import { parseWith } from '../schemas/primitives.ts';
import { AUDIT_KIND, type FieldValue, type MemoryStore } from '../types.ts';
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
  /** Entries to read, the newest first. */
  maxEntries: z.int().min(1).max(1_000_000).default(100_000),
});
export type AggregateQuery = z.input<typeof aggregateQuery>;

/** Exact, by nearest rank. */
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
  /** Null without entries. */
  readonly errorRate: number | null;
  /** Over the `numRated` entries with a quality. */
  readonly meanQuality: number | null;
  readonly numRated: number;
  /** Over the `numEstimated` entries whose quality was estimated without a person. */
  readonly meanEstimate: number | null;
  readonly numEstimated: number;
  readonly totalMs: Percentiles | null;
  readonly ttftMs: Percentiles | null;
}

export interface AuditTrend extends AuditSummary {
  readonly startMs: number;
}

export interface AuditAggregate extends AuditSummary {
  /** Buckets with entries, the oldest first. */
  readonly trend: readonly AuditTrend[];
  /** The most used first. */
  readonly models: readonly {
    readonly model: string;
    readonly count: number;
    readonly share: number;
    readonly numErrors: number;
  }[];
  readonly errors: readonly { readonly code: string; readonly count: number }[];
  /** False: entries beyond `maxEntries`, the oldest, were not counted. */
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

const meanOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

function summarize(rows: readonly Row[]): AuditSummary {
  const numErrors = rows.filter((row) => row['hasError'] === true).length;
  const [qualities, estimates] = [numbers(rows, 'quality'), numbers(rows, 'estimate')];
  return {
    count: rows.length,
    numErrors,
    errorRate: rows.length === 0 ? null : numErrors / rows.length,
    numRated: qualities.length,
    meanQuality: meanOf(qualities),
    numEstimated: estimates.length,
    meanEstimate: meanOf(estimates),
    totalMs: percentiles(numbers(rows, 'totalMs')),
    ttftMs: percentiles(numbers(rows, 'ttftMs')),
  };
}

/** Neither erased nor the record of an erasure or of a tool call, whose times are not those of a model. */
const isRequest = ({ requestId, model }: Row): boolean =>
  requestId != null && model !== ERASURE_MODEL && !String(model).startsWith(TOOL_MODEL_PREFIX);

const byCount = (a: { count: number }, b: { count: number }): number => b.count - a.count;

/** Counts, rates, percentiles and trends over the matching entries. */
export async function aggregateAudit(
  store: MemoryStore,
  services: MemoryServices,
  tenant: string,
  given: AggregateQuery = {},
): Promise<AuditAggregate> {
  const query = parseWith<z.output<typeof aggregateQuery>>(aggregateQuery as never, given, 'audit aggregate');
  const { head } = await readHead(store, services.sha256, tenant);
  const filter = toRecordFilter(query, head.sequence);
  const records: { fields: Row; createdMs: number }[] = [];
  const find = { kinds: [AUDIT_KIND], filter, order: 'newest' } as const;
  for await (const page of readPages(store, tenant, find, Math.min(1000, query.maxEntries + 1))) {
    // Only the counted parts: texts and vectors of 100,000 entries would take a gigabyte.
    for (const { fields, createdMs } of page) if (isRequest(fields)) records.push({ fields, createdMs });
    if (records.length > query.maxEntries) break;
  }
  const ratings = await allRatings(store, tenant);
  // A later rating replaces the quality that an entry was written with.
  const rated = records.slice(0, query.maxEntries).map(({ fields, createdMs }) => {
    const quality = ratings.get(String(fields['requestId']))?.quality ?? fields['quality'] ?? null;
    return { createdMs, fields: { ...fields, quality } as Row };
  });
  const isMatch = (row: Row): boolean => !hasBounds(query) || isWithin(row['quality'] as number | null, query);
  const matches = rated.filter(({ fields }) => isMatch(fields));
  const rows = matches.map(({ fields }) => fields);
  const trend = [...groupBy(matches, ({ createdMs }) => Math.floor(createdMs / query.bucketMs) * query.bucketMs)]
    .map(([startMs, items]) => ({ startMs, ...summarize(items.map(({ fields }) => fields)) }))
    .sort((a, b) => a.startMs - b.startMs);
  const models = [...groupBy(rows, (row) => String(row['model']))].map(([model, items]) => {
    const { count, numErrors } = summarize(items);
    return { model, count, share: count / rows.length, numErrors };
  });
  const failed = rows.filter((row) => row['hasError'] === true);
  const errors = [...groupBy(failed, (row) => String(row['errorCode']))].map(([code, items]) => ({
    code,
    count: items.length,
  }));
  return {
    ...summarize(rows),
    trend,
    models: models.sort(byCount),
    errors: errors.sort(byCount),
    isComplete: records.length <= query.maxEntries,
  };
}
