import { RuvLLMError } from '../../core/errors.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { checkRerankerState, createReranker, type Reranker } from './reranker.ts';
import type { RerankSelection } from './select.ts';
import type { RerankerState } from './types.ts';

export const RERANKER_LINE = 'reranker/main';

export interface KeptReranker {
  readonly reranker: Reranker;
  /** Space of the vectors that it was trained on. */
  readonly space: string;
  readonly version: number;
}

export interface NewReranker {
  readonly state: RerankerState;
  readonly space: string;
  readonly selection: RerankSelection;
  readonly loop: LearnedVersion['loop'];
  readonly learnedFrom: readonly string[];
}

export interface RerankerStore {
  /** Writes a version; only a selected one keeps its weights and becomes active. */
  add(tenant: string, trained: NewReranker): Promise<LearnedVersion>;
  /** Null: ranking by similarity. */
  active(tenant: string): Promise<KeptReranker | null>;
  /** Null: this version ranks by similarity. Throws `not_found` if its weights are gone. */
  read(tenant: string, version: LearnedVersion): Promise<KeptReranker | null>;
}

/** Versions of re-rankers. */
export function createRerankerStore(log: VersionLog, blobs: FloatBlobs): RerankerStore {
  async function read(
    tenant: string,
    { contents, blobs: names, version, isAccepted }: LearnedVersion,
  ): Promise<KeptReranker | null> {
    const { format, version: formatVersion, dim, seed, space, ranks } = contents as unknown as Contents;
    if (isAccepted && ranks === 'similarity') return null;
    const name = names['weights'];
    if (name === undefined || typeof space !== 'string') {
      throw new RuvLLMError('io', `version ${version} of ${RERANKER_LINE} has no weights or no space`);
    }
    const parameters = await blobs.get(tenant, name);
    return { reranker: createReranker({ format, version: formatVersion, dim, seed, parameters }), space, version };
  }

  return {
    read,
    async active(tenant) {
      const found = await log.active(tenant, RERANKER_LINE);
      return found === null ? null : read(tenant, found);
    },
    async add(tenant, { state, space, selection, loop, learnedFrom }) {
      const { parameters, ...rest } = checkRerankerState(state);
      const { next, reason } = selection;
      // Weights first: after a crash in between the old version is active.
      const names: Record<string, string> = next === 'trained' ? { weights: await blobs.put(tenant, parameters) } : {};
      return log.add(tenant, {
        line: RERANKER_LINE,
        loop,
        isAccepted: next !== 'unchanged',
        reason,
        metrics: metricsOf(selection),
        blobs: names,
        contents: { ...rest, space, ranks: next === 'similarity' ? 'similarity' : 'attention' },
        learnedFrom: [...learnedFrom],
      });
    },
  };
}

type Contents = Omit<RerankerState, 'parameters'> & { readonly space: string; readonly ranks: string };

function metricsOf({ numQueries, numGroups, similarity, present, trained, overSimilarity }: RerankSelection) {
  const all = {
    num_queries: numQueries,
    num_groups: numGroups,
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
