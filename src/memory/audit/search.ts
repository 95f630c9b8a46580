import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import type { MemoryServices } from '../common/services.ts';
import { count, embedding, name, parseWith, space, text, timeMs, unit } from '../schemas/primitives.ts';
import { auditFromRecord, isTombstone, linkFromRecord, type LinkedEntry } from '../schemas/audit.ts';
import { AUDIT_KIND, type FieldCondition, type MemoryRecord, type MemoryStore, type RecordFilter } from '../types.ts';
import { readHead } from './head.ts';
import { hasBounds, isWithin, namedWithin, ratingsOf, type AuditRating } from './ratings.ts';

const range = z.number().min(0);

/** Conditions that must all hold; each can be left out. */
export const auditFilter = z.strictObject({
  fromMs: timeMs.optional(),
  /** Up to, not including. */
  toMs: timeMs.optional(),
  /** By the last rating, else by the quality the entry was written with. */
  minQuality: unit.optional(),
  /** Excludes requests without a quality. */
  maxQuality: unit.optional(),
  /** By the quality that was estimated without a person. */
  minEstimate: unit.optional(),
  maxEstimate: unit.optional(),
  minTotalMs: range.optional(),
  maxTotalMs: range.optional(),
  minTtftMs: range.optional(),
  maxTtftMs: range.optional(),
  model: name.optional(),
  sessionId: name.optional(),
  requestId: name.optional(),
  hasError: z.boolean().optional(),
  errorCode: name.optional(),
});
type AuditFilter = z.infer<typeof auditFilter>;

export const auditQuery = auditFilter.extend({
  /** Anywhere in query, response or error; ignores case. */
  text: text(1024, 1).optional(),
  /** The nearest first; without it the newest. */
  similarTo: z
    .strictObject({ vector: embedding, space, minSimilarity: z.number().min(-1).max(1).optional() })
    .optional(),
  order: z.enum(['newest', 'oldest']).default('newest'),
  limit: z.int().min(1).max(1000).default(50),
  /** `next` of the page before. */
  after: text(4096).optional(),
  /** Entries to read at most; a search by similarity reads at most the nearest 1000. */
  maxScanned: z.int().min(1).max(1_000_000).default(10_000),
});
export type AuditQuery = z.input<typeof auditQuery>;
type ResolvedQuery = z.output<typeof auditQuery>;

export interface FoundEntry extends LinkedEntry {
  /** Null without `similarTo`. */
  readonly similarity: number | null;
  /** Null: unrated, or the rating has expired. */
  readonly rating: AuditRating | null;
}

export interface AuditPage {
  readonly entries: readonly FoundEntry[];
  /** Null: this is the last page. */
  readonly next: string | null;
  /** False: `maxScanned` ended the search before the page was full; more matches may follow. */
  readonly isComplete: boolean;
  readonly numScanned: number;
}

/** The store's largest k. */
const MAX_NEAREST = 1000;

const BOUNDS = [
  ['minEstimate', 'estimate', '>='],
  ['maxEstimate', 'estimate', '<='],
  ['minTotalMs', 'totalMs', '>='],
  ['maxTotalMs', 'totalMs', '<='],
  ['minTtftMs', 'ttftMs', '>='],
  ['maxTtftMs', 'ttftMs', '<='],
] as const;
const EQUALS = ['model', 'sessionId', 'requestId', 'hasError', 'errorCode'] as const;

export function toRecordFilter(query: AuditFilter, lastSequence: number): RecordFilter {
  const fields: FieldCondition[] = [{ field: 'sequence', is: '<=', value: lastSequence }];
  for (const [key, field, is] of BOUNDS) {
    const value = query[key];
    if (value !== undefined) fields.push({ field, is, value });
  }
  for (const field of EQUALS) {
    const value = query[field];
    if (value !== undefined) fields.push({ field, is: '=', value });
  }
  return {
    ...(query.fromMs === undefined ? {} : { createdFromMs: query.fromMs }),
    ...(query.toMs === undefined ? {} : { createdToMs: query.toMs }),
    fields,
  };
}

/** The end of a page: entries beyond `pin` are ignored, `skip` of those after `from` are done. */
const cursor = z.strictObject({ pin: count, skip: count, from: text(4096).nullable() });
type Cursor = z.infer<typeof cursor>;

function parseCursor(after: string): Cursor {
  try {
    return parseWith(cursor, JSON.parse(after) as unknown, 'after');
  } catch (error) {
    throw new RuvLLMError('invalid_option', 'after must be "next" of a page', { cause: error, data: { option: 'after' } }); // prettier-ignore
  }
}

function containsText(needle: string | undefined): (record: MemoryRecord) => boolean {
  const wanted = needle?.toLowerCase();
  return (record) => {
    if (isTombstone(linkFromRecord(record).body)) return false;
    if (wanted === undefined) return true;
    const { query, response, error } = auditFromRecord(record).entry;
    return [query, response, error?.message ?? '', error?.code ?? ''].some((part) =>
      part.toLowerCase().includes(wanted),
    );
  };
}

type Matcher = (record: MemoryRecord) => boolean;

/** Checks quality bounds; null: the filter has them already. */
type QualityMatch = ((records: readonly MemoryRecord[]) => Promise<Matcher>) | null;

function matchQuality(
  store: MemoryStore,
  services: MemoryServices,
  tenant: string,
  query: ResolvedQuery,
): NonNullable<QualityMatch> {
  return async (records) => {
    const ids = records.map(({ fields }) => String(fields['requestId']));
    const ratings = await ratingsOf(store, services.sha256, tenant, ids);
    return ({ fields }) => {
      const own = typeof fields['quality'] === 'number' ? fields['quality'] : null;
      return isWithin(ratings.get(String(fields['requestId']))?.quality ?? own, query);
    };
  };
}

type Found = Omit<FoundEntry, 'rating'>;
type FoundPage = Omit<AuditPage, 'entries'> & { readonly entries: readonly Found[] };

interface Search {
  readonly store: MemoryStore;
  readonly tenant: string;
  readonly quality: QualityMatch;
  readonly query: ResolvedQuery;
  readonly filter: RecordFilter;
  readonly at: Cursor;
}

async function searchByTime({ store, tenant, query, filter, at, quality }: Search): Promise<FoundPage> {
  const hasText = containsText(query.text);
  const entries: Found[] = [];
  const pageSize =
    query.text === undefined && quality === null
      ? Math.min(1000, query.limit + at.skip)
      : Math.min(1000, query.maxScanned + at.skip);
  let { skip, from } = at;
  let numScanned = 0;
  for (;;) {
    const page = await store.find(tenant, {
      kinds: [AUDIT_KIND],
      filter,
      order: query.order,
      limit: pageSize,
      ...(from === null ? {} : { after: from }),
    });
    const isRated = (await quality?.(page.records)) ?? (() => true);
    for (; skip < page.records.length; skip++) {
      const isFull = entries.length === query.limit;
      if (isFull || numScanned === query.maxScanned) {
        return { entries, next: JSON.stringify({ ...at, skip, from }), isComplete: isFull, numScanned };
      }
      numScanned++;
      const record = page.records[skip]!;
      if (isRated(record) && hasText(record)) entries.push({ ...auditFromRecord(record), similarity: null });
    }
    if (page.next === null) return { entries, next: null, isComplete: true, numScanned };
    from = page.next;
    skip = 0;
  }
}

async function searchBySimilarity({ store, tenant, query, filter, at, quality }: Search): Promise<FoundPage> {
  const hasText = containsText(query.text);
  const isPlain = query.text === undefined && quality === null;
  const { vector, space, minSimilarity = -1 } = query.similarTo!;
  const bound = Math.min(MAX_NEAREST, query.maxScanned + at.skip);
  let k = Math.min(bound, at.skip + query.limit * (isPlain ? 1 : 4) + 1);
  for (;;) {
    const near = await store.nearest(tenant, { vector, space, kinds: [AUDIT_KIND], k, filter });
    const candidates = near.filter(({ similarity }) => similarity >= minSimilarity);
    const isRated = (await quality?.(candidates.map(({ record }) => record))) ?? (() => true);
    const entries: Found[] = [];
    let skip = at.skip;
    for (; skip < candidates.length && entries.length < query.limit; skip++) {
      const { record, similarity } = candidates[skip]!;
      if (isRated(record) && hasText(record)) entries.push({ ...auditFromRecord(record), similarity });
    }
    const numScanned = skip - at.skip;
    if (skip < candidates.length)
      return { entries, next: JSON.stringify({ ...at, skip }), isComplete: true, numScanned };
    const isExhausted = near.length < k || candidates.length < near.length;
    if (isExhausted) return { entries, next: null, isComplete: true, numScanned };
    if (k === bound) {
      const canGoOn = bound < MAX_NEAREST && numScanned > 0;
      const isFull = entries.length === query.limit;
      return {
        entries,
        next: canGoOn ? JSON.stringify({ ...at, skip }) : null,
        isComplete: isFull && canGoOn,
        numScanned,
      };
    }
    k = Math.min(bound, k * 4);
  }
}

/** Finds entries by any combination of conditions, page by page; new entries do not shift the pages. */
export async function searchAudit(
  store: MemoryStore,
  services: MemoryServices,
  tenant: string,
  given: AuditQuery,
): Promise<AuditPage> {
  const query = parseWith<ResolvedQuery>(auditQuery as never, given, 'audit search');
  const at =
    query.after === undefined
      ? { pin: (await readHead(store, services.sha256, tenant)).head.sequence, skip: 0, from: null }
      : parseCursor(query.after);
  const filter = toRecordFilter(query, at.pin);
  const named = hasBounds(query) ? await namedWithin(store, tenant, query) : null;
  if (named?.values.length === 0) return { entries: [], next: null, isComplete: true, numScanned: 0 };
  const isScanned = hasBounds(query) && named === null;
  const search: Search = {
    store,
    tenant,
    query,
    filter: named === null ? filter : { ...filter, fields: [...filter.fields!, named] },
    at,
    quality: isScanned ? matchQuality(store, services, tenant, query) : null,
  };
  const page = await (query.similarTo === undefined ? searchByTime(search) : searchBySimilarity(search));
  const ids = page.entries.map(({ entry }) => entry.requestId);
  const ratings = await ratingsOf(store, services.sha256, tenant, ids);
  const entries = page.entries.map((one) => ({ ...one, rating: ratings.get(one.entry.requestId) ?? null }));
  return { ...page, entries };
}
