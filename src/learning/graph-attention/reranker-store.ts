import { RuvLLMError } from '../../core/errors.ts';
import type { Rerank } from '../../memory/search/rerank.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { checkRerankerState, createReranker, toRankQuery, type Reranker } from './reranker.ts';
import type { RerankSelection } from './select.ts';
import type { RerankerState } from './types.ts';

/** The line of versions it is kept under. */
export const RERANKER_LINE = 'reranker/main';

export interface KeptReranker {
  readonly reranker: Reranker;
  /** Fingerprint of the vectors it was trained on: others say nothing to it. */
  readonly space: string;
  readonly version: number;
}

export interface NewReranker {
  readonly state: RerankerState;
  readonly space: string;
  readonly selection: RerankSelection;
  readonly loop: LearnedVersion['loop'];
  /** Requests it learned from. */
  readonly learnedFrom: readonly string[];
}

export interface RerankerStore {
  /** Writes down what was trained and whether it was selected; only then its weights are kept, and it serves. */
  add(tenant: string, trained: NewReranker): Promise<LearnedVersion>;
  /** Null: similarity ranks. */
  active(tenant: string): Promise<KeptReranker | null>;
  /** For the search: ranks by what serves each tenant now. */
  readonly rerank: Rerank;
}

/** Keeps what was learned about ranking, version by version. */
export function createRerankerStore(log: VersionLog, blobs: FloatBlobs): RerankerStore {
  /** Reading weights at every search would take longer than ranking. */
  const ready = new Map<string, KeptReranker>();

  async function active(tenant: string): Promise<KeptReranker | null> {
    const found = await log.active(tenant, RERANKER_LINE);
    if (found === null) {
      ready.delete(tenant);
      return null;
    }
    const known = ready.get(tenant);
    if (known?.version === found.version) return known;
    const kept = { ...(await read(tenant, found)), version: found.version };
    if (ready.size >= MAX_READY) ready.delete(ready.keys().next().value!);
    ready.set(tenant, kept);
    return kept;
  }

  async function read(tenant: string, { contents, blobs: names, version }: LearnedVersion) {
    const { format, version: formatVersion, dim, seed, space } = contents as unknown as Contents;
    const name = names['weights'];
    if (name === undefined || typeof space !== 'string') {
      throw new RuvLLMError('io', `version ${version} of ${RERANKER_LINE} has no weights or no space`);
    }
    const parameters = await blobs.get(tenant, name);
    return { reranker: createReranker({ format, version: formatVersion, dim, seed, parameters }), space };
  }

  return {
    active,
    async add(tenant, { state, space, selection, loop, learnedFrom }) {
      const { parameters, ...rest } = checkRerankerState(state);
      const isAccepted = selection.next !== 'unchanged';
      const contents = { ...rest, space };
      // Weights first: whatever stops in between, the old version serves.
      const names: Record<string, string> = isAccepted ? { weights: await blobs.put(tenant, parameters) } : {};
      return log.add(tenant, {
        line: RERANKER_LINE,
        loop,
        isAccepted,
        reason: selection.reason,
        metrics: metricsOf(selection),
        blobs: names,
        contents,
        learnedFrom: [...learnedFrom],
      });
    },
    async rerank(request) {
      const kept = await active(request.tenant);
      if (kept === null || kept.space !== request.space) return null;
      return [...kept.reranker.score(toRankQuery(request))];
    },
  };
}

/** Tenants whose weights stay ready; one takes 12 KB, and 25 KB of directions. */
const MAX_READY = 256;

type Contents = Omit<RerankerState, 'parameters'> & { readonly space: string };

function metricsOf({ numQueries, similarity, present, trained, overSimilarity }: RerankSelection) {
  const all = {
    num_queries: numQueries,
    ndcg_similarity: similarity.ndcg,
    ndcg_present: present.ndcg,
    ndcg_trained: trained.ndcg,
    mrr_similarity: similarity.mrr,
    mrr_present: present.mrr,
    mrr_trained: trained.mrr,
    ndcg_change: overSimilarity.mean,
    ndcg_change_low: overSimilarity.low,
    ndcg_change_high: overSimilarity.high,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => Number.isFinite(value)));
}
