import { assert, RuvLLMError, serializeError } from '../core/errors.ts';
import type { TopLogits } from '../core/top-logits.ts';
import { MAX_TOP, PAGE_TOKENS } from '../kernels/contract.ts';
import { createPagePool } from '../kv-cache/page-pool.ts';
import type { LoadedModel } from '../models/types.ts';
import { buildBatch } from './batch.ts';
import { checkRequest } from './check-request.ts';
import { schedule, type SchedulerState } from './scheduler.ts';
import { createSequence, numGenerated, type Sequence } from './sequence.ts';
import type { EngineEvent, EngineRequest, EngineStats, Schedule } from './types.ts';

export interface EngineOptions {
  /** Most tokens of one sequence, prompt and generated; bounded by the pages there are. */
  readonly maxContext: number;
  /** Milliseconds on any clock that does not jump. */
  readonly now: () => number;
}

/** Serves many sequences with one model, a step at a time. */
export interface Engine {
  /** Most tokens of one sequence. */
  readonly maxContext: number;
  readonly hasWork: boolean;
  /** Queues a sequence; throws a typed error when it is not valid or can never fit. */
  add(request: EngineRequest): void;
  /** Drops a sequence and gives its pages back at once; false when there is none of that id. */
  abort(id: number): boolean;
  /** One step; the next may start when it has resolved. Fails only by a bug: failures of a sequence are events. */
  step(): Promise<EngineEvent[]>;
  stats(): EngineStats;
  /** Throws `internal` when pages and sequences do not add up. */
  checkIntegrity(): void;
  dispose(): Promise<void>;
}

/** An engine that owns `model` and its KV pages. */
export function createEngine(model: LoadedModel, options: EngineOptions): Engine {
  const { limits, shape } = model;
  const { now } = options;
  const pool = createPagePool(limits.numPages);
  const maxContext = Math.min(options.maxContext, limits.numPages * PAGE_TOKENS);
  const state: SchedulerState = {
    pool,
    running: [],
    waiting: [],
    maxBatchTokens: limits.maxBatchTokens,
    maxRunning: Math.min(limits.maxSequences, limits.maxLogitRows, limits.maxBatchTokens),
  };
  const sequences = new Map<number, Sequence>();
  const totals = { numSteps: 0, numComputedTokens: 0, numGeneratedTokens: 0, numPreemptions: 0 };
  let lastId = -1;
  let isStepping = false;

  async function step(): Promise<EngineEvent[]> {
    assert(!isStepping, 'a step began before the last one ended');
    if (sequences.size === 0) return [];
    isStepping = true;
    let plan: Schedule | null = null;
    try {
      plan = schedule(state);
      assert(plan.rows.length > 0, `nothing to compute for ${sequences.size} sequences`);
      countStep(plan);
      const batch = buildBatch(plan, sequences, Math.min(MAX_TOP, shape.vocabSize));
      const logits = await model.forward(batch);
      return update(plan, logits, batch.numTop! > 0);
    } catch (error) {
      return failStep(plan, error);
    } finally {
      isStepping = false;
    }
  }

  function countStep(plan: Schedule): void {
    totals.numSteps++;
    totals.numPreemptions += plan.preemptedIds.length;
    for (const { id, numRows } of plan.rows) {
      totals.numComputedTokens += numRows;
      sequences.get(id)!.startedAtMs ??= now();
    }
  }

  function update(plan: Schedule, logits: Float32Array, hasTop: boolean): EngineEvent[] {
    const events: EngineEvent[] = [];
    let logitRow = 0;
    for (const { id, start, numRows, isCaughtUp } of plan.rows) {
      const row = isCaughtUp ? logitRow++ : null;
      const sequence = sequences.get(id);
      if (sequence === undefined) continue; // aborted while the step ran
      sequence.numComputed = start + numRows;
      if (row === null) continue;
      const rowLogits = logits.subarray(row * shape.vocabSize, (row + 1) * shape.vocabSize);
      events.push(...sampleNext(sequence, rowLogits, hasTop ? model.topOf(row) : undefined));
    }
    return events;
  }

  function sampleNext(sequence: Sequence, logits: Float32Array, top?: TopLogits): EngineEvent[] {
    const { id, sampler, stopIds, maxTokens } = sequence.request;
    try {
      const token = sampler.sample(logits, sequence.tokenIds, top);
      const times = {
        queuedMs: sequence.startedAtMs! - sequence.addedAtMs,
        elapsedMs: now() - sequence.addedAtMs,
      };
      if (stopIds.has(token.tokenId)) {
        remove(sequence);
        return [{ type: 'finished', id, reason: 'stop', stopId: token.tokenId, ...times }];
      }
      sequence.tokenIds.push(token.tokenId);
      totals.numGeneratedTokens++;
      const events: EngineEvent[] = [{ type: 'token', id, token, ...times }];
      if (numGenerated(sequence) === maxTokens) {
        remove(sequence);
        events.push({ type: 'finished', id, reason: 'length', stopId: null, ...times });
      }
      return events;
    } catch (error) {
      return [fail(sequence, error)];
    }
  }

  /** What the step computed is in doubt; what was not part of it goes on. A step without a plan would fail for ever. */
  function failStep(plan: Schedule | null, cause: unknown): EngineEvent[] {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const error =
      cause instanceof RuvLLMError
        ? cause
        : new RuvLLMError('kernel_failed', `the forward pass failed: ${reason}`, { cause });
    const ids = plan === null || plan.rows.length === 0 ? [...sequences.keys()] : plan.rows.map((rows) => rows.id);
    return ids.flatMap((id) => sequences.get(id) ?? []).map((sequence) => fail(sequence, error));
  }

  function fail(sequence: Sequence, error: unknown): EngineEvent {
    remove(sequence);
    return { type: 'failed', id: sequence.request.id, error: serializeError(error) };
  }

  function remove(sequence: Sequence): void {
    sequences.delete(sequence.request.id);
    for (const list of [state.running, state.waiting]) {
      const index = list.indexOf(sequence);
      if (index >= 0) list.splice(index, 1);
    }
    sequence.pages.release();
  }

  function abort(id: number): boolean {
    const sequence = sequences.get(id);
    if (sequence === undefined) return false;
    // In the middle of a step the kernels may still write into these pages; nobody gets them before the next step.
    remove(sequence);
    return true;
  }

  return {
    maxContext,
    get hasWork() {
      return sequences.size > 0;
    },
    add(request) {
      assert(request.id > lastId, `request id ${request.id} after ${lastId}: ids rise`);
      checkRequest(request, { maxContext, vocabSize: shape.vocabSize });
      lastId = request.id;
      const sequence = createSequence(request, pool, now());
      sequences.set(request.id, sequence);
      state.waiting.push(sequence);
    },
    abort,
    step,
    stats: () => ({
      numRunning: state.running.length,
      numWaiting: state.waiting.length,
      numPages: pool.numPages,
      numFreePages: pool.numFreePages,
      ...totals,
    }),
    checkIntegrity() {
      const all = [...state.running, ...state.waiting];
      assert(all.length === sequences.size, `${all.length} sequences in lists, ${sequences.size} known`);
      for (const sequence of state.waiting) {
        assert(sequence.pages.pageIds.length === 0, `waiting sequence ${sequence.request.id} holds pages`);
      }
      pool.checkIntegrity(state.running.map((sequence) => sequence.pages.pageIds));
    },
    async dispose() {
      for (const id of sequences.keys()) abort(id);
      await model.dispose();
    },
  };
}
