import { createLruMap } from '../../memory/common/lru-map.ts';
import type { RankCandidates, Rerank } from '../../memory/search/rerank.ts';
import { toRankQuery } from '../graph-attention/reranker.ts';
import type { KeptReranker } from '../graph-attention/reranker-store.ts';
import { messageOf } from '../../core/errors.ts';

/** Age after which the store is read again, while the cached one keeps ranking: another process may have changed it. */
const FRESH_MS = 30_000;
/** Cached tenants: 12 KB of weights each, and 100 KB of directions. */
const MAX_TENANTS = 256;

interface Ready {
  /** Null: ranking by similarity. */
  readonly kept: KeptReranker | null;
  readonly rank: RankCandidates | null;
  readonly readMs: number;
}

export interface TenantRerankersContext {
  active(tenant: string): Promise<KeptReranker | null>;
  now(): number;
  /** Called with the reason if a re-ranker cannot be used; similarity ranks instead. */
  readonly report: (message: string) => void;
}

/** Caches the active re-ranker of each tenant: a search does not wait for the store. */
export function createTenantRerankers({ active, now, report }: TenantRerankersContext): Rerank {
  const ready = createLruMap<Ready>(MAX_TENANTS);
  const loading = new Map<string, Promise<Ready>>();

  /** A failing re-ranker must not fail the search. */
  const rankWith = ({ reranker, version }: KeptReranker): RankCandidates => {
    let hasFailed = false;
    return (request) => {
      try {
        return Array.from(reranker.score(toRankQuery(request)));
      } catch (error) {
        if (!hasFailed) report(`version ${version} cannot rank: ${messageOf(error)}`);
        hasFailed = true;
        return null;
      }
    };
  };

  function load(tenant: string): Promise<Ready> {
    const known = loading.get(tenant);
    if (known !== undefined) return known;
    const before = ready.peek(tenant);
    const reading: Promise<Ready> = active(tenant)
      .catch((error: unknown) => {
        report(`reading a re-ranking failed: ${messageOf(error)}`);
        return null;
      })
      .then((kept) => {
        const isKnown = before?.kept != null && before.kept.version === kept?.version;
        const next = isKnown ? before : { kept, rank: kept === null ? null : rankWith(kept) };
        const found = { ...next, readMs: now() };
        // `forget` was called meanwhile: this read may be outdated.
        if (loading.get(tenant) === reading) {
          loading.delete(tenant);
          ready.set(tenant, found);
        }
        return found;
      });
    loading.set(tenant, reading);
    return reading;
  }

  const pick = ({ kept, rank }: Ready, space: string): RankCandidates | null => (kept?.space === space ? rank : null);

  return {
    of(tenant, space) {
      const known = ready.get(tenant);
      if (known === undefined) return load(tenant).then((found) => pick(found, space));
      if (now() - known.readMs > FRESH_MS) void load(tenant);
      return pick(known, space);
    },
    forget(tenant) {
      loading.delete(tenant);
      ready.delete(tenant);
    },
  };
}
