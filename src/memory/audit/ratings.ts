import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import { readPages } from '../common/store-access.ts';
import { trajectoryName, type Verdict } from '../schemas/trajectory.ts';
import { AUDIT_KIND, type FieldCondition, type MemoryRecord, type MemoryStore } from '../types.ts';

/** Feedback on an answer, given after its entry was written. Entries never change, so it comes from the trajectory. */
export interface AuditRating {
  /** 0 to 1; the last rating. */
  readonly quality: number;
  readonly verdict: Verdict;
}

export interface QualityBounds {
  readonly minQuality?: number | undefined;
  readonly maxQuality?: number | undefined;
}

/** Request ids in one condition; more are checked one by one. */
const MAX_NAMED = 500;
const PAGE = 500;
/** Rated requests read for one summary, the newest first. */
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

/** Ratings of these requests by id, without unrated ones. */
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

/** All ratings of a tenant, the newest first. */
export async function allRatings(store: MemoryStore, tenant: string): Promise<ReadonlyMap<string, AuditRating>> {
  const ratings = new Map<string, AuditRating>();
  const query = { kinds: ['trajectory'], filter: { fields: conditionsOf({}) }, order: 'newest' } as const;
  for await (const records of readPages(store, tenant, query, PAGE)) {
    for (const record of records) ratings.set(String(record.fields['requestId']), ratingOf(record)!);
    if (ratings.size >= MAX_RATED) break;
  }
  return ratings;
}

/** The condition that selects requests rated within the bounds; null when there are too many, or entries have their own quality, so each must be checked. */
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
