import { createKvCache, type KvCache } from '../../src/kv-cache/kv-cache.ts';
import { schedule, type SchedulerState } from '../../src/engine/scheduler.ts';
import { createSequence } from '../../src/engine/sequence.ts';
import { createTenantShares } from '../../src/engine/tenant-shares.ts';
import { createWaitingList } from '../../src/engine/waiting-list.ts';
import type { AdmittedRequest, Schedule } from '../../src/engine/types.ts';
import { engineRequest } from './engine-request.ts';
import { createToyModel, createToySampler } from './toy-model.ts';

export interface SchedulerLimits {
  numPages?: number;
  maxBatchTokens?: number;
  maxRunning?: number;
  maxRunningPerTenant?: number;
  keepsPrefixes?: boolean;
}

export interface SchedulerSetUp {
  readonly state: SchedulerState;
  readonly cache: KvCache;
  /** Prompts differ from the first token, unless specified. Returns the id. */
  arrive(promptTokens: number, request?: Partial<AdmittedRequest>, nowMs?: number): number;
  /** Simulates a step: computed tokens catch up, and sequences that caught up gain one token. */
  step(nowMs?: number): Schedule;
  /** Ends the sequence. */
  end(id: number): void;
}

/** An idle scheduler without a model: tokens are only counted. */
export function createSchedulerSetUp(limits: SchedulerLimits = {}): SchedulerSetUp {
  const { numPages = 100, maxBatchTokens = 32, maxRunning = 8, maxRunningPerTenant = Infinity } = limits;
  const { keepsPrefixes = true } = limits;
  const { pages } = createToyModel({ limits: { numPages } });
  const cache = createKvCache({ memory: pages, numPages, maxBatchTokens, modelHash: '', policy: '', keepsPrefixes });
  const state: SchedulerState = {
    cache,
    pageTokens: pages.pageTokens,
    running: [],
    waiting: createWaitingList(),
    shares: createTenantShares(),
    maxBatchTokens,
    maxRunning,
    maxRunningPerTenant,
    isWhole: false,
    agingMs: 1000,
    numTurns: 0,
  };
  let nextId = 0;
  return {
    state,
    cache,
    arrive(promptTokens, request = {}, nowMs = 0) {
      const id = nextId++;
      const promptIds = Array.from({ length: promptTokens }, () => id);
      const sampler = createToySampler(0);
      const sequence = createSequence(
        engineRequest({ id, promptIds, maxTokens: 99, sampler, ...request }),
        cache,
        pages.pageTokens,
        nowMs,
      );
      state.shares.enter(sequence.request.tenant);
      state.waiting.add(sequence);
      return id;
    },
    step(nowMs = 0) {
      const plan = schedule(state, nowMs);
      for (const { id, start, numRows, isCaughtUp } of plan.rows) {
        const sequence = state.running.find((one) => one.request.id === id)!;
        state.shares.charge(sequence.request.tenant, numRows);
        sequence.numComputed = start + numRows;
        sequence.pages.publish(sequence.tokenIds, sequence.numComputed);
        if (isCaughtUp) sequence.tokenIds.push(1);
      }
      return plan;
    },
    end(id) {
      const [sequence] = state.running.splice(
        state.running.findIndex(({ request }) => request.id === id),
        1,
      );
      sequence!.pages.release(sequence!.tokenIds, sequence!.numComputed);
      state.shares.leave(sequence!.request.tenant);
    },
  };
}
