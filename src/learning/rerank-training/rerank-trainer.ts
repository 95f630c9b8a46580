import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { Rerank } from '../../memory/search/rerank.ts';
import type { MemoryStore } from '../../memory/types.ts';
import { createRerankerStore, RERANKER_LINE } from '../graph-attention/reranker-store.ts';
import type { LearningWork } from '../sona/types.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { gatherLists } from './rank-examples.ts';
import { createTenantRerankers } from './tenant-rerankers.ts';
import { MIN_GROUPS, MIN_LISTS } from './train-rerank.ts';

export interface RerankReport {
  /** Requests whose used sources are known. */
  readonly numLists: number;
  /** Null: there were too few requests. */
  readonly version: LearnedVersion | null;
  readonly reason: string;
}

/** Trains re-rankers for recalled texts, for each tenant from its own requests. */
export interface RerankTrainer {
  /** The active re-rankers, for the memory. */
  readonly rerank: Rerank;
  /** `limitMs`: time limit of the training. Default one minute. */
  train(tenant: string, loop: LearnedVersion['loop'], signal?: AbortSignal, limitMs?: number): Promise<RerankReport>;
  /** Trains if there are enough new requests, else returns null. */
  maybeTrain(tenant: string, signal?: AbortSignal): Promise<RerankReport | null>;
  /** Makes an older version active; 0: ranking by similarity. */
  rollback(tenant: string, toVersion: number): Promise<LearnedVersion | null>;
  /** Deletes versions that learned from these requests and trains again from the others; null: none did. */
  forget(tenant: string, gone: ReadonlySet<string>): Promise<string | null>;
}

export interface RerankTrainerContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly trajectories: Trajectories;
  readonly versions: VersionLog;
  readonly blobs: FloatBlobs;
  readonly work: Pick<LearningWork, 'trainReranker' | 'cancel'>;
  readonly options: { readonly backgroundEveryMs: number };
  readonly report: (message: string) => void;
}

/** New requests that another version requires. */
const MIN_NEW = 50;
const TIME_LIMIT_MS = 60_000;

export function createRerankTrainer(context: RerankTrainerContext): RerankTrainer {
  const { store, services, trajectories, versions, blobs, work } = context;
  const kept = createRerankerStore(versions, blobs);
  const rerank = createTenantRerankers({
    active: (tenant) => kept.active(tenant),
    now: () => services.now(),
    report: (message) => context.report(`re-ranking: ${message}`),
  });
  /** One run at a time for a tenant: each is compared with the result of the last. */
  const { run: inTurn } = createSerialQueues();
  /** When a tenant was last checked: reading lists is slow. */
  const lookedMs = new Map<string, number>();

  async function train(
    tenant: string,
    loop: LearnedVersion['loop'],
    signal?: AbortSignal,
    limitMs = TIME_LIMIT_MS,
  ): Promise<RerankReport> {
    const { space, examples, requestIds } = await gatherLists(store, trajectories, tenant);
    const numLists = examples.length;
    if (space === null || numLists < MIN_LISTS) {
      const reason = `it is known of ${numLists} requests what they used, ${MIN_LISTS} are needed`;
      return { numLists, version: null, reason };
    }
    const numGroups = new Set(examples.map(({ group }) => group)).size;
    if (numGroups < MIN_GROUPS) {
      const reason = `it is known of ${numGroups} conversations what they used, ${MIN_GROUPS} are needed`;
      return { numLists, version: null, reason };
    }
    const serving = await kept.active(tenant);
    const dim = examples[0]!.query.length;
    const isSame = serving?.space === space;
    const job = {
      dim,
      examples,
      serving: isSame ? serving.reranker.state : null,
      timeLimitMs: Math.min(limitMs, TIME_LIMIT_MS),
    };
    const outcome = await whileWanted(signal, () => work.trainReranker(job)).catch((error: unknown) => {
      // Bad data must not stop the rest of the loop.
      if (error instanceof RuvLLMError && error.code === 'bad_gradient') return error.message;
      throw error;
    });
    if (typeof outcome === 'string') return { numLists, version: null, reason: outcome };
    const { state, selection } = outcome;
    const learnedFrom = outcome.learnedFrom.map((i) => requestIds[i]!);
    const version = await kept.add(tenant, { state, space, selection, loop, learnedFrom });
    if (version.isAccepted) rerank.forget(tenant);
    return { numLists, version, reason: version.reason };
  }

  /** A stopped run must not become a version. */
  async function whileWanted<T>(signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
    const aborted = (): RuvLLMError => new RuvLLMError('aborted', 'learning was stopped');
    if (signal?.aborted) throw aborted();
    const stop = (): void => void work.cancel();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const outcome = await run();
      if (signal?.aborted) throw aborted();
      return outcome;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  async function isDue(tenant: string): Promise<boolean> {
    const nowMs = services.now();
    const last = lookedMs.get(tenant);
    if (last !== undefined && nowMs - last < context.options.backgroundEveryMs) return false;
    const [newest] = await versions.history(tenant, RERANKER_LINE, 1);
    if (newest !== undefined && nowMs - newest.createdMs < context.options.backgroundEveryMs) return false;
    const filter = newest === undefined ? {} : { createdFromMs: newest.createdMs };
    return (
      (await store.count(tenant, { kinds: ['trajectory'], filter })) >= (newest === undefined ? MIN_LISTS : MIN_NEW)
    );
  }

  async function forget(tenant: string, gone: ReadonlySet<string>): Promise<string | null> {
    const all = await versions.history(tenant, RERANKER_LINE, 1000);
    const stained = all.filter(({ learnedFrom }) => learnedFrom.some((id) => gone.has(id)));
    if (stained.length === 0) return null;
    const active = await versions.active(tenant, RERANKER_LINE);
    const isServing = stained.some(({ version }) => version === active?.version);
    // Deactivated first: after a crash in between the forgotten requests do not rank.
    if (isServing) await versions.rollback(tenant, RERANKER_LINE, 0);
    rerank.forget(tenant);
    for (const { blobs: names } of stained) for (const blob of Object.values(names)) await blobs.delete(tenant, blob);
    if (!isServing) return 'older versions that had learned from what is gone are gone';
    const { version, reason } = await train(tenant, 'operator');
    return version?.isAccepted ? `learned again from the remaining requests: ${reason}` : `similarity ranks: ${reason}`;
  }

  return {
    rerank,
    train: (tenant, loop, signal, limitMs) => inTurn(tenant, () => train(tenant, loop, signal, limitMs)),
    async maybeTrain(tenant, signal) {
      if (!(await isDue(tenant))) return null;
      lookedMs.set(tenant, services.now());
      return inTurn(tenant, () => train(tenant, 'deep', signal));
    },
    rollback: (tenant, toVersion) =>
      inTurn(tenant, async () => {
        // Read first: a version whose weights are gone must not become active.
        const target = toVersion === 0 ? null : await versions.get(tenant, RERANKER_LINE, toVersion);
        if (target?.isAccepted) await kept.read(tenant, target);
        const served = await versions.rollback(tenant, RERANKER_LINE, toVersion);
        rerank.forget(tenant);
        return served;
      }),
    forget: (tenant, gone) => inTurn(tenant, () => forget(tenant, gone)),
  };
}
