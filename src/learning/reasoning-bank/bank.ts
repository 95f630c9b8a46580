import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import { retryConflict } from '../../memory/common/retry-conflict.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { nodeFromRecord } from '../../memory/schemas/node.ts';
import type { FieldCondition, MemoryRecord, MemoryStore } from '../../memory/types.ts';
import type { WatchStore } from '../../memory/watched-store.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { type ClusterWork, clusterWhole, normalized } from './k-means.ts';
import { mergePatterns, patternOfMembers, type RatedTrajectory } from './make-pattern.ts';
import { byWeight, type HeardPattern, nearPatterns, pickOurs, SPARES, weighPatterns } from './near-patterns.ts';
import { BANK_SOURCE, type Pattern, patternFromNode, patternToRecord } from './pattern.ts';
import { createPatternTables } from './pattern-tables.ts';

export interface BankOptions {
  /** Least trajectories of a pattern. Default 3. */
  readonly minMembers?: number;
  /** Most clusters of one distillation. Default 100. */
  readonly maxClusters?: number;
  /** Cosine from which patterns are merged. Default 0.95. */
  readonly mergeSimilarity?: number;
  /** Most patterns of a tenant. Default 100 000. */
  readonly maxPatterns?: number;
  /** Unused patterns are deleted after this time. Default 30 days. */
  readonly maxIdleMs?: number;
  /** Most trajectories of one distillation. Default 5000. */
  readonly maxTrajectories?: number;
}

export interface DistillationReport {
  readonly numTrajectories: number;
  readonly numCreated: number;
  readonly numMerged: number;
  /** In clusters too small for a pattern; they wait for more. */
  readonly numWaiting: number;
  readonly numPruned: number;
}

export interface PatternQuery {
  readonly vector: Float32Array;
  readonly space: string;
  readonly k: number;
}

/** Patterns of rated requests, searched by similarity. */
export interface ReasoningBank {
  /** Turns rated trajectories into patterns, each once. */
  distil(tenant: string): Promise<DistillationReport>;
  search(tenant: string, query: PatternQuery): Promise<readonly HeardPattern[]>;
  /** Whether a search asks no other thread. */
  isAtHand(tenant: string, space: string): boolean;
  /** Begins to read the patterns of a space into this thread. */
  keepAtHand(tenant: string, embedded: Omit<PatternQuery, 'k'>): void;
  /** Records uses of patterns; ids of other and of deleted records are ignored. */
  noteUses(tenant: string, counts: ReadonlyMap<string, number>): Promise<void>;
  count(tenant: string): Promise<number>;
  /** Rebuilds all patterns from the remaining trajectories. */
  rebuild(tenant: string): Promise<DistillationReport>;
}

const OURS: FieldCondition = { field: 'source', is: '=', value: BANK_SOURCE };
const PAGE = 500;

export interface BankContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly trajectories: Trajectories;
  /** Keeps patterns in this thread if it is set, so that searches need no other. */
  readonly watch?: WatchStore | null;
  /** Clusters on another thread, because thousands of vectors take seconds. Default: on this one. */
  readonly cluster?: ClusterWork;
}

export function createReasoningBank(
  {
    store,
    services,
    trajectories,
    watch = null,
    cluster = (...work) => Promise.resolve(clusterWhole(...work)),
  }: BankContext,
  given?: BankOptions,
): ReasoningBank {
  const options = resolveOptions<Required<BankOptions>>('reasoning bank', given, {
    minMembers: integerOption(3, 1, 1000),
    maxClusters: integerOption(100, 1, 1000),
    mergeSimilarity: numberOption(0.95, 0, 1),
    maxPatterns: integerOption(100_000, 1, 1_000_000),
    maxIdleMs: numberOption(30 * 86_400_000, 1, Number.MAX_SAFE_INTEGER),
    maxTrajectories: integerOption(5000, 1, 100_000),
  });
  const tables = watch === null ? null : createPatternTables(store, watch, options.maxPatterns);
  const read = (record: MemoryRecord): Pattern => patternFromNode(nodeFromRecord(record));

  async function write(tenant: string, patterns: readonly Pattern[]): Promise<void> {
    await store.put(patterns.map((pattern) => patternToRecord(pattern, tenant)));
  }

  async function nearest(tenant: string, query: PatternQuery, withVectors: boolean) {
    const { k, ...near } = query;
    for (const spare of SPARES) {
      const ours = pickOurs(await store.nearest(tenant, { ...near, ...nearPatterns(k, spare), withVectors }), k, spare);
      if (ours !== null) return ours;
    }
    return store.nearest(tenant, { ...query, kinds: ['pattern'], withVectors, filter: { fields: [OURS] } });
  }

  const count = (tenant: string): Promise<number> =>
    store.count(tenant, { kinds: ['pattern'], filter: { fields: [OURS] } });

  async function removeWhere(tenant: string, conditions: readonly FieldCondition[]): Promise<number> {
    for (let numGone = 0; ;) {
      const filter = { fields: [OURS, ...conditions] };
      const { records } = await store.find(tenant, { kinds: ['pattern'], filter, order: 'oldest', limit: PAGE });
      if (records.length === 0) return numGone;
      numGone += await store.delete(
        tenant,
        records.map(({ id }) => id),
      );
    }
  }

  /** Deletes unused patterns, then the least valuable above the limit. */
  async function prune(tenant: string): Promise<number> {
    const numStale = await removeWhere(tenant, [
      { field: 'lastUsedMs', is: '<', value: services.now() - options.maxIdleMs },
    ]);
    const excess = (await count(tenant)) - options.maxPatterns;
    if (excess <= 0) return numStale;
    const worth: { id: string; value: number }[] = [];
    let after: string | undefined;
    do {
      const filter = { fields: [OURS] };
      const page = await store.find(tenant, { kinds: ['pattern'], filter, order: 'oldest', limit: PAGE, ...(after === undefined ? {} : { after }) }); // prettier-ignore
      for (const record of page.records) {
        const { confidence, support, numUses } = read(record);
        worth.push({ id: record.id, value: confidence * Math.log1p(support + numUses) });
      }
      after = page.next ?? undefined;
    } while (after !== undefined);
    worth.sort((a, b) => a.value - b.value);
    const gone = worth.slice(0, excess).map(({ id }) => id);
    for (let at = 0; at < gone.length; at += PAGE) await store.delete(tenant, gone.slice(at, at + PAGE));
    return numStale + gone.length;
  }

  async function distilSpace(tenant: string, rated: readonly RatedTrajectory[], space: string) {
    // One more than could be full: with too few clusters unrelated requests would share one.
    const k = Math.min(options.maxClusters, Math.ceil(rated.length / options.minMembers) + 1);
    const vectors = rated.map(({ embedding }) => normalized(embedding));
    // Seeded by the trajectories: the same ones make the same patterns.
    const { labels, centroids } = await cluster(vectors, { k, seed: rated.length, joinAt: options.mergeSimilarity });
    const counts = { numCreated: 0, numMerged: 0, numWaiting: 0 };
    for (const label of centroids.keys()) {
      const members = rated.filter((_, i) => labels[i] === label);
      const fresh = patternOfMembers(services.newId(), members, space, Math.floor(services.now()));
      const [known] = await nearest(tenant, { vector: fresh.embedding, space, k: 1 }, true);
      if (known !== undefined && known.similarity > options.mergeSimilarity) {
        await write(tenant, [mergePatterns(read(known.record), fresh)]);
        counts.numMerged++;
      } else if (members.length < options.minMembers) {
        counts.numWaiting += members.length;
        continue;
      } else {
        await write(tenant, [fresh]);
        counts.numCreated++;
      }
      // After the pattern: a crash in between counts trajectories twice rather than never.
      await trajectories.markDistilled(
        tenant,
        members.map(({ requestId }) => requestId),
      );
    }
    return counts;
  }

  /** If all patterns are gone, also trajectories that were distilled before. */
  async function distilAll(tenant: string): Promise<DistillationReport> {
    let report = await distil(tenant);
    while (report.numTrajectories === options.maxTrajectories && report.numWaiting < report.numTrajectories) {
      const next = await distil(tenant);
      report = {
        numTrajectories: next.numTrajectories,
        numCreated: report.numCreated + next.numCreated,
        numMerged: report.numMerged + next.numMerged,
        numWaiting: next.numWaiting,
        numPruned: report.numPruned + next.numPruned,
      };
    }
    return report;
  }

  const distil: ReasoningBank['distil'] = async (tenant) => {
    const found = await trajectories.find(tenant, {
      conditions: [
        { field: 'isDistilled', is: '=', value: false },
        { field: 'verdict', is: 'in', values: ['success', 'failure', 'partial'] },
      ],
      order: 'oldest',
      limit: options.maxTrajectories,
    });
    const rated = found.flatMap((one) =>
      one.embedding === null || one.quality === null
        ? []
        : [{ ...one, embedding: one.embedding, quality: one.quality }],
    );
    const total = { numTrajectories: rated.length, numCreated: 0, numMerged: 0, numWaiting: 0 };
    for (const space of new Set(rated.map((one) => one.space!))) {
      const counts = await distilSpace(
        tenant,
        rated.filter((one) => one.space === space),
        space,
      );
      total.numCreated += counts.numCreated;
      total.numMerged += counts.numMerged;
      total.numWaiting += counts.numWaiting;
    }
    return { ...total, numPruned: await prune(tenant) };
  };

  return {
    distil,
    async rebuild(tenant) {
      await removeWhere(tenant, []);
      await trajectories.markUndistilled(tenant);
      return distilAll(tenant);
    },
    keepAtHand: (tenant, { space, vector }) => tables?.load(tenant, space, vector.length),
    isAtHand: (tenant, space) => tables?.isLoaded(tenant, space) ?? false,
    async search(tenant, query) {
      tables?.load(tenant, query.space, query.vector.length);
      const here = tables?.search(tenant, query) ?? null;
      if (here !== null) return byWeight(here);
      return weighPatterns(await nearest(tenant, query, false));
    },
    async noteUses(tenant, counts) {
      for (const [id, numNew] of counts) {
        // A loop may be merging it: its new contents must not be lost.
        await retryConflict(async () => {
          const [record] = await store.get(tenant, [id]);
          if (record?.kind !== 'pattern' || record.fields['source'] !== BANK_SOURCE) return;
          const pattern = read(record);
          const lastUsedMs = Math.max(pattern.lastUsedMs, Math.floor(services.now()));
          const next = patternToRecord({ ...pattern, numUses: pattern.numUses + numNew, lastUsedMs }, tenant);
          await store.put([{ ...next, ifVersion: record.version }]);
        });
      }
    },
    count,
  };
}
