import { createLruMap } from '../../memory/common/lru-map.ts';
import type { RankCandidates, Rerank } from '../../memory/search/rerank.ts';
import { toRankQuery } from '../graph-attention/reranker.ts';
import type { KeptReranker } from '../graph-attention/reranker-store.ts';

/** After it the store is asked again while what is known ranks on: another process may have learned, or gone back. */
const FRESH_MS = 30_000;
/** Tenants whose weights stay ready: 12 KB each, and 100 KB of directions. */
const MAX_TENANTS = 256;

interface Ready {
  /** Null: similarity ranks. */
  readonly kept: KeptReranker | null;
  readonly rank: RankCandidates | null;
  readonly readMs: number;
}

export interface TenantRerankersContext {
  active(tenant: string): Promise<KeptReranker | null>;
  now(): number;
  /** Hears why a tenant's re-ranking cannot be used; similarity ranks then. */
  readonly report: (message: string) => void;
}

/** What ranks for each tenant, read once and looked after from time to time: a search asks without waiting. */
export function createTenantRerankers({ active, now, report }: TenantRerankersContext): Rerank {
  const ready = createLruMap<Ready>(MAX_TENANTS);
  const loading = new Map<string, Promise<Ready>>();

  /** A search never fails of it. */
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
        // Forgotten meanwhile: what was read may be what was before.
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

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
