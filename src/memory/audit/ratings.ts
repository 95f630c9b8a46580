import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import { trajectoryName, type Verdict } from '../schemas/trajectory.ts';
import { AUDIT_KIND, type FieldCondition, type MemoryRecord, type MemoryStore } from '../types.ts';

/** What was said of an answer after its entry was written: the log itself never changes, so it is looked up where it is kept. */
export interface AuditRating {
  /** 0 to 1, the last word. */
  readonly quality: number;
  readonly verdict: Verdict;
}

export interface QualityBounds {
  readonly minQuality?: number | undefined;
  readonly maxQuality?: number | undefined;
}

/** Names in one condition: more are looked through instead. */
const MAX_NAMED = 500;
const PAGE = 500;
/** Rated requests that one summary reads, the newest first. */
const MAX_RATED = 100_000;

export const hasBounds = ({ minQuality, maxQuality }: QualityBounds): boolean =>
  minQuality !== undefined || maxQuality !== undefined;

export const isWithin = (quality: number | null, { minQuality = 0, maxQuality = 1 }: QualityBounds): boolean =>
  quality !== null && quality >= minQuality && quality <= maxQuality;

const conditionsOf = ({ minQuality = 0, maxQuality = 1 }: QualityBounds): readonly FieldCondition[] => [
  { field: 'quality', is: '>=', value: minQuality },
  { field: 'quality', is: '<=', value: maxQuality },
];

function ratingOf(record: MemoryRecord): AuditRating | null {
  const { quality, verdict } = record.fields;
  return typeof quality === 'number' ? { quality, verdict: verdict as Verdict } : null;
}

/** Of these requests, by their ids; those that nobody rated are not in it. */
export async function ratingsOf(
  store: MemoryStore,
  sha256: Sha256,
  tenant: string,
  requestIds: readonly string[],
): Promise<ReadonlyMap<string, AuditRating>> {
  const ratings = new Map<string, AuditRating>();
  for (let from = 0; from < requestIds.length; from += PAGE) {
    const ids = requestIds.slice(from, from + PAGE);
    const records = await store.get(tenant, ids.map((id) => nameId(sha256, tenant, ...trajectoryName(id)))); // prettier-ignore
    for (const record of records) {
      const rating = record === null ? null : ratingOf(record);
      if (rating !== null) ratings.set(String(record!.fields['requestId']), rating);
    }
  }
  return ratings;
}

/** All of a tenant, the newest first. */
export async function allRatings(store: MemoryStore, tenant: string): Promise<ReadonlyMap<string, AuditRating>> {
  const ratings = new Map<string, AuditRating>();
  let after: string | null = null;
  do {
    const page = await store.find(tenant, {
      kinds: ['trajectory'],
      filter: { fields: conditionsOf({}) },
      order: 'newest',
      limit: PAGE,
      ...(after === null ? {} : { after }),
    });
    for (const record of page.records) ratings.set(String(record.fields['requestId']), ratingOf(record)!);
    after = page.next;
  } while (after !== null && ratings.size < MAX_RATED);
  return ratings;
}

/** The condition that only requests rated within the bounds fulfil; null: they are too many, or entries have a quality of their own, and each is to be looked at. */
export async function namedWithin(
  store: MemoryStore,
  tenant: string,
  bounds: QualityBounds,
): Promise<Extract<FieldCondition, { is: 'in' }> | null> {
  const fields = conditionsOf(bounds);
  if ((await store.count(tenant, { kinds: [AUDIT_KIND], filter: { fields } })) > 0) return null;
  const { records, next } = await store.find(tenant, { kinds: ['trajectory'], filter: { fields }, order: 'newest', limit: MAX_NAMED }); // prettier-ignore
  if (next !== null) return null;
  return { field: 'requestId', is: 'in', values: records.map((record) => record.fields['requestId']!) };
}
