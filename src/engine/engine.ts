import { assert, RuvLLMError } from '../core/errors.ts';
import { MAX_TOP } from '../kernels/contract.ts';
import type { BlockEvent } from '../kv-cache/block-log.ts';
import { createKvCache, type KvCache, type KvCacheStats } from '../kv-cache/kv-cache.ts';
import type { SharedStore } from '../kv-cache/shared-store.ts';
import type { SpillStore, PrefixQuery, PrefixReport } from '../kv-cache/types.ts';
import type { LoadedModel, StepBatch } from '../models/types.ts';
import type { Adapter } from '../adapters/index.ts';
import { createAdapterTable } from './adapter-table.ts';
import { buildBatch } from './batch.ts';
import type { CachedPrompt } from './protocol.ts';
import { keysOf } from './image-rows.ts';
import { checkRequest } from './check-request.ts';
import { schedule, type SchedulerState } from './scheduler.ts';
import { createTenantShares } from './tenant-shares.ts';
import type { EngineRequest, EngineEvent, EngineStats, RequestAdapter, Schedule } from './types.ts';
import { restOf, type Sequence } from './sequence.ts';
import { createSequenceTable } from './sequence-table.ts';
import { createDraftModel } from './speculation/draft-model.ts';
import { createDraftMemory } from './speculation/draft-memory.ts';
import { createSpeculator, type SpeculatorOptions } from './speculation/speculator.ts';
import { countDrafts } from './speculation/types.ts';
import { createPendingSamples } from './pending-samples.ts';
import { createStepResults } from './step-results.ts';
import { createWaitingList } from './waiting-list.ts';

/** A shared store, and the longest a request waits for its pages. */
export interface SharedTier {
  readonly store: SharedStore;
  readonly timeoutMs: number;
}

export interface EngineOptions {
  /** Maximum tokens of one sequence, prompt and generated; limited by the page pool. */
  readonly maxContext: number;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  /** Maximum waiting requests; further ones are rejected. Default 1024. */
  readonly maxWaiting?: number;
  /** Maximum running requests, and maximum requests in total, of one tenant. Default: unlimited. */
  readonly maxRunningPerTenant?: number;
  readonly maxRequestsPerTenant?: number;
  /** Waiting this long raises a request by one priority. Default 30 s. */
  readonly agingMs?: number;
  /** Identifies the model's content and its page format. */
  readonly modelHash?: string;
  readonly policy?: string;
  /** Packing is disabled if it would reduce the context below this. Default 0. */
  readonly minContext?: number;
  /** Tokens at the end of a running sequence that are never packed. Default 256. */
  readonly tailTokens?: number;
  /** Enables the prefix cache. Default true. */
  readonly keepsPrefixes?: boolean;
  /** Reports cached pages by hashes with this salt; default null: it does not. */
  readonly blockSalt?: string | null;
  /** Where evicted pages are spilled; default: nowhere. */
  readonly spill?: SpillStore | null;
  /** Storage of several nodes for pages, and the longest a request waits for it; default: none. */
  readonly shared?: SharedTier | null;
  /** Called when there is work again that no request caused. */
  readonly onReady?: () => void;
  /** Whether tokens are drafted and verified in one step; default false. Never in models with recurrent layers, whose state cannot go back. */
  readonly speculates?: boolean;
  /** A smaller model with the same vocabulary that drafts tokens; the engine owns it. Default none. */
  readonly draftModel?: LoadedModel | null;
  /** Called with a problem that costs speed only. */
  readonly warn?: (message: string) => void;
  /** Further settings of drafts; most are for tests. */
  readonly speculation?: Pick<SpeculatorOptions, 'openSources' | 'isForced'>;
}

/** Serves many sequences with one model, step by step. */
export interface Engine {
  /** Maximum tokens of one sequence. */
  readonly maxContext: number;
  /** Whether older pages are packed; false where packing would reduce the context too far. */
  readonly packsPages: boolean;
  readonly hasWork: boolean;
  /**
   * Tokens that are chosen in another thread, and pages of other nodes: all sequences wait for them, or the next step should wait a
   * moment for quick ones.
   * null: neither.
   */
  readonly awaited: { readonly next: Promise<void>; readonly isIdle: boolean } | null;
  /** Queues a sequence; throws a typed error if it is invalid or can never fit. */
  add(request: EngineRequest): void;
  /** Drops a sequence and frees its pages at once; false if the id is unknown. */
  abort(id: number): boolean;
  /** Runs one step; await it before the next. Rejects only on a bug: failures of a sequence are events. */
  step(): Promise<EngineEvent[]>;
  /** The loss of the device that computes; null: none. No further step can succeed. */
  readonly lost: RuvLLMError | null;
  /** After a loss: requests for the rest of every sequence, with its sampler, and the events of tokens that were still chosen elsewhere. */
  handOver(): Promise<{ events: EngineEvent[]; requests: EngineRequest[] }>;
  /** Work for idle times, such as spilling pages to disk. */
  readonly hasBackgroundWork: boolean;
  workInBackground(): void;
  /** Accessible only between two steps, because it moves pages. */
  readonly cache: Pick<KvCache, 'canReserve' | 'reserve' | 'unreserve' | 'clear'>;
  /** Only between two steps: loads an adapter under an id. Throws if it does not fit the model or the memory. */
  loadAdapter(id: number, adapter: Adapter): { readonly sizeBytes: number };
  /** True: a request with these adapters can only be added between two steps, because one of them must be loaded again. */
  awaitsPause(adapters: readonly RequestAdapter[]): boolean;
  /** Only between two steps: running requests keep the adapter, new ones cannot use it. False if not found. */
  unloadAdapter(id: number): boolean;
  stats(): EngineStats;
  /**
   * Only between two steps: drops a tenant's pages, in memory and on disk. With `isWhole` its requests fail with `aborted` and its
   * key on disk is destroyed; otherwise its running requests finish without leaving pages.
   */
  eraseTenant(tenant: string, isWhole: boolean): EngineEvent[];
  /** Cached pages of a tenant, in memory and on disk. */
  countTenant(tenant: string): number;
  /** Tokens of a prompt that are in the prefix cache; 0 where an adapter is not loaded any more. */
  cachedTokens(prompt: CachedPrompt): number;
  /** Changes of the prefix cache since the last call; none without `blockSalt`. */
  takeBlockEvents(): readonly BlockEvent[];
  /** A bounded part of the prefix cache's contents. */
  prefixes(query: PrefixQuery): PrefixReport;
  /** Throws `internal` if pages and sequences are inconsistent. */
  checkIntegrity(): void;
  dispose(): Promise<void>;
}

/** Reservations without those of drafts: the rest belongs to adapters. */
const withoutDrafts = (stats: KvCacheStats, draftBytes: number): KvCacheStats => ({
  ...stats,
  adapterBytes: stats.adapterBytes - draftBytes,
});

const isLoss = (error: unknown): error is RuvLLMError => error instanceof RuvLLMError && error.code === 'device_lost';

/** Counts of an engine that drafts nothing. */
const NO_DRAFTS = countDrafts();

/** Creates an engine that owns `model` and its KV pages. */
export function createEngine(model: LoadedModel, options: EngineOptions): Engine {
  const { limits, shape } = model;
  const { now } = options;
  const {
    maxWaiting = 1024,
    maxRunningPerTenant = Infinity,
    maxRequestsPerTenant = Infinity,
    agingMs = 30_000,
  } = options;
  const { pageTokens } = model.pages;
  const cache = createKvCache({
    memory: model.pages,
    numPages: limits.numPages,
    maxBatchTokens: limits.maxBatchTokens,
    maxContext: options.maxContext,
    modelHash: options.modelHash ?? '',
    policy: options.policy ?? '',
    ...(options.tailTokens === undefined ? {} : { tailTokens: options.tailTokens }),
    minTokens: options.minContext ?? 0,
    keepsPrefixes: options.keepsPrefixes ?? true,
    spill: options.spill ?? null,
    shared: options.shared == null ? null : { ...options.shared, now, onReady: options.onReady ?? (() => {}) },
    states: model.states,
    blockSalt: options.blockSalt ?? null,
    lent: {
      get sizeBytes() {
        return learned.reservedBytes;
      },
      giveBack: () => learned.giveSlab(),
    },
  });
  // An encoder computes a sequence in one step.
  const maxContext = shape.isCausal ? cache.maxTokens : Math.min(cache.maxTokens, limits.maxBatchTokens);
  const shares = createTenantShares();
  const adapters = createAdapterTable(model, cache);
  const state: SchedulerState = {
    cache,
    pageTokens,
    running: [],
    waiting: createWaitingList(),
    shares,
    maxBatchTokens: limits.maxBatchTokens,
    maxRunning: Math.min(limits.maxSequences, limits.maxLogitRows, limits.maxBatchTokens),
    maxRunningPerTenant,
    isWhole: !shape.isCausal,
    agingMs,
    numTurns: 0,
  };
  let isStepping = false;
  let lost: RuvLLMError | null = null;
  let isHandedOver = false;
  const learned = createDraftMemory({
    cache,
    budgetBytes: limits.numPages * model.pages.pageBytes,
    spill: options.keepsPrefixes === false ? null : (options.spill ?? null),
    modelHash: options.modelHash ?? '',
  });
  const draftModel = options.draftModel == null ? null : createDraftModel(options.draftModel, { maxContext, now });
  const speculator =
    options.speculates === true && model.states === null && shape.isCausal
      ? createSpeculator({
          ...limits,
          ...options.speculation,
          vocabSize: shape.vocabSize,
          learned,
          now,
          draftModel,
          warn: options.warn ?? (() => {}),
        })
      : null;
  const pending = createPendingSamples(now);
  /** Sequences of erased tenants, which leave nothing behind. */
  const erased = new WeakSet<Sequence>();
  const table = createSequenceTable({
    state,
    cache,
    adapters,
    maxWaiting,
    maxRequestsPerTenant,
    now,
    isStepping: () => isStepping,
    onEnd(sequence, isFailed) {
      pending.remove(sequence);
      if (!isHandedOver) sequence.request.sampler.close?.();
      draftModel?.release(sequence);
      const { tenant, cachePrefix, promptIds, pooling, examiner } = sequence.request;
      if (isFailed || speculator === null || !cachePrefix || pooling !== undefined || examiner !== undefined) return;
      if (!erased.has(sequence)) learned.add(tenant, sequence.tokenIds, promptIds.length);
    },
  });
  const { byId: sequences, finish } = table;
  const results = createStepResults(model, table, pending, now, cache);
  const totals = { numSteps: 0, numComputedTokens: 0, numPreemptions: 0 };

  async function step(): Promise<EngineEvent[]> {
    assert(!isStepping, 'a step began before the last one ended');
    if (sequences.size === 0) return [];
    isStepping = true;
    let plan: Schedule | null = null;
    const events = [...results.collect(), ...table.expire()];
    try {
      cache.fetches?.settle();
      table.queueFetched();
      learned.settle();
      await cache.maintain(state.running);
      if (sequences.size === 0) return events;
      plan = schedule(state, now());
      if (speculator !== null && plan.rows.length > 0) {
        plan = await speculator.extend(plan, sequences);
        if (plan.rows.length === 0) return events; // all were aborted meanwhile
      }
      countStep(plan);
      if (plan.rows.length === 0) {
        assert(
          plan.preemptedIds.length + pending.size + table.fetching.size > 0,
          `nothing to compute for ${sequences.size} sequences`,
        );
        return events;
      }
      const batch = buildBatch(plan, sequences, Math.min(MAX_TOP, shape.vocabSize));
      const startMs = now();
      const logits = await computeLogits(plan, batch);
      cache.onComputed(
        plan.rows.reduce((sum, { numRows }) => sum + numRows, 0),
        now() - startMs,
      );
      const stepEvents = results.apply(plan, logits, batch.numTop! > 0);
      speculator?.settle(plan, now() - startMs);
      return [...events, ...stepEvents];
    } catch (error) {
      if (isLoss(error)) {
        lost = error;
        return events;
      }
      return [...events, ...failStep(plan, error)];
    } finally {
      isStepping = false;
      adapters.sweep();
    }
  }

  /** Rows of logits; on a device they stay there as long as the top ones decide every token. */
  async function computeLogits(plan: Schedule, batch: StepBatch): Promise<Float32Array> {
    const { readLogits } = model;
    if (readLogits === null || !results.mayLeaveLogits(plan)) return model.forward(batch);
    const unread = await model.forward({ ...batch, leavesLogits: true });
    return results.areDecided(plan) ? unread : readLogits();
  }

  function countStep(plan: Schedule): void {
    totals.numSteps++;
    totals.numPreemptions += plan.preemptedIds.length;
    for (const { id, numRows } of plan.rows) {
      const sequence = sequences.get(id)!;
      totals.numComputedTokens += numRows;
      shares.charge(sequence.request.tenant, numRows);
      sequence.startedAtMs ??= now();
    }
  }

  /** Fails the sequences of this step; others continue. Without a plan all fail, or the step would fail for ever. */
  function failStep(plan: Schedule | null, cause: unknown): EngineEvent[] {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const error =
      cause instanceof RuvLLMError
        ? cause
        : new RuvLLMError('kernel_failed', `the forward pass failed: ${reason}`, { cause });
    const ids = plan === null || plan.rows.length === 0 ? [...sequences.keys()] : plan.rows.map((rows) => rows.id);
    return ids.flatMap((id) => sequences.get(id) ?? []).map((sequence) => table.fail(sequence, error));
  }

  function abort(id: number): boolean {
    const sequence = sequences.get(id);
    if (sequence === undefined) return false;
    // During a step the kernels may still write to these pages; they are not reused before the next step.
    finish(sequence);
    return true;
  }

  return {
    maxContext,
    packsPages: cache.packsPages,
    get hasWork() {
      return sequences.size > 0;
    },
    get awaited() {
      const numAway = pending.size + table.fetching.size;
      const isIdle = numAway > 0 && numAway === sequences.size;
      if (!isIdle && !pending.areQuick) return null;
      const next = pending.size === 0 ? [] : [pending.next];
      if (table.fetching.size > 0) next.push(cache.fetches!.next);
      return { next: Promise.race(next), isIdle };
    },
    add(added) {
      const requestAdapters = adapters.resolve(added.adapters ?? []);
      assert(!isStepping || adapters.areInMemory(requestAdapters), 'pages are moved only between two steps');
      const request = { ...added, adapters: requestAdapters, adapterHash: adapters.cacheKey(requestAdapters) };
      checkRequest(request, { maxContext, shape });
      assert(request.pooling === undefined || !request.cachePrefix, 'cached tokens have no hidden states');
      table.add(request);
    },
    abort,
    step,
    get lost() {
      return lost;
    },
    async handOver() {
      const events: EngineEvent[] = [];
      for (events.push(...results.collect()); pending.size > 0; events.push(...results.collect())) await pending.next;
      isHandedOver = true;
      return { events, requests: Array.from(sequences.values(), (sequence) => restOf(sequence, now())) };
    },
    awaitsPause: (wanted) => isStepping && !adapters.areInMemory(wanted),
    loadAdapter(id, adapter) {
      assert(!isStepping, 'pages are moved only between two steps');
      return adapters.load(id, adapter);
    },
    unloadAdapter(id) {
      assert(!isStepping, 'memory is freed only between two steps');
      return adapters.unload(id);
    },
    get hasBackgroundWork() {
      return cache.hasBackgroundWork || learned.hasWork;
    },
    workInBackground() {
      learned.settle();
      if (cache.hasBackgroundWork) cache.workInBackground();
      else learned.work();
    },
    get cache() {
      assert(!isStepping, 'pages are moved only between two steps');
      const { canReserve, reserve, unreserve } = cache;
      const clear = (): void => {
        learned.clear();
        cache.clear();
      };
      return { canReserve, reserve, unreserve, clear };
    },
    cachedTokens({ tenant, adapters: wanted, ...prompt }) {
      try {
        const adapterHash = adapters.cacheKey(adapters.resolve(wanted));
        return cache.cachedTokens({ tenant, adapterHash }, keysOf(prompt, cache));
      } catch (error) {
        if (error instanceof RuvLLMError && error.code === 'not_found') return 0;
        throw error;
      }
    },
    takeBlockEvents: () => cache.takeBlockEvents(),
    prefixes: (query) => cache.prefixes(query),
    eraseTenant(tenant, isWhole) {
      assert(!isStepping, 'pages are dropped only between two steps');
      const theirs = [...sequences.values()].filter(({ request }) => request.tenant === tenant);
      const error = new RuvLLMError('aborted', 'the tenant of this request was erased');
      const events = isWhole ? theirs.map((sequence) => table.fail(sequence, error)) : [];
      for (const sequence of theirs) {
        erased.add(sequence);
        if (!isWhole) sequence.pages.makePrivate();
      }
      learned.forget(tenant);
      draftModel?.eraseTenant(tenant);
      cache.eraseTenant(tenant, { keepsKey: !isWhole });
      return events;
    },
    countTenant: (tenant) => cache.countTenant(tenant) + learned.count(tenant) + (draftModel?.countTenant(tenant) ?? 0),
    stats: () => ({
      numRunning: state.running.length,
      numWaiting: state.waiting.length + table.fetching.size,
      numPages: limits.numPages,
      numFreePages: cache.numFreePages(state.running.flatMap(({ pages }) => pages.pages)),
      ...totals,
      numGeneratedTokens: results.numGeneratedTokens,
      numRefused: table.numRefused,
      numExpired: table.numExpired,
      drafts: speculator?.counts ?? NO_DRAFTS,
      numAdapters: adapters.numAdapters,
      cache: withoutDrafts(cache.stats(), learned.reservedBytes),
      draftBytes: learned.reservedBytes,
    }),
    checkIntegrity() {
      const all = [...state.running, ...state.waiting, ...table.fetching.keys()];
      assert(all.length === sequences.size, `${all.length} sequences in lists, ${sequences.size} registered`);
      for (const sequence of [...state.waiting, ...table.fetching.keys()]) {
        assert(sequence.pages.pages.length === 0, `waiting sequence ${sequence.request.id} holds pages`);
      }
      cache.checkIntegrity(state.running.map(({ pages }) => pages));
    },
    async dispose() {
      for (const id of sequences.keys()) abort(id);
      learned.settle();
      learned.dispose();
      await cache.dispose();
      await draftModel?.dispose();
      await model.dispose();
    },
  };
}
