import { assert, RuvLLMError, serializeError } from '../core/errors.ts';
import type { KvCache } from '../kv-cache/kv-cache.ts';
import type { PageFetch } from '../kv-cache/page-fetch.ts';
import type { AdapterTable } from './adapter-table.ts';
import type { SchedulerState } from './scheduler.ts';
import { createSequence, numGenerated, type Sequence } from './sequence.ts';
import type { AdmittedRequest, EngineEvent, EngineRequest } from './types.ts';

/** An engine's sequences with everything they hold: a place in the scheduler, KV pages, adapters, a tenant's share. */
export interface SequenceTable {
  readonly byId: ReadonlyMap<number, Sequence>;
  readonly numRefused: number;
  readonly numExpired: number;
  /** Sequences that wait for pages of other nodes, in no list of the scheduler. */
  readonly fetching: ReadonlyMap<Sequence, PageFetch>;
  /** Queues a checked request; throws `overloaded` if too many are waiting. */
  add(request: AdmittedRequest): void;
  /** Queues the sequences whose pages have arrived. */
  queueFetched(): void;
  /** Removes a sequence; its pages stay in the prefix cache until they are evicted. */
  finish(sequence: Sequence): void;
  /** Removes a sequence and discards its pages. */
  fail(sequence: Sequence, error: unknown): EngineEvent;
  /** Fails requests past their timeout, running or not. */
  expire(): EngineEvent[];
}

export interface SequenceTableOptions {
  readonly state: SchedulerState;
  readonly cache: KvCache;
  readonly adapters: AdapterTable;
  readonly maxWaiting: number;
  readonly maxRequestsPerTenant: number;
  readonly now: () => number;
  readonly isStepping: () => boolean;
  /** Called when a sequence has ended; `isFailed`: its tokens may be invalid. */
  readonly onEnd: (sequence: Sequence, isFailed: boolean) => void;
}

export function createSequenceTable(options: SequenceTableOptions): SequenceTable {
  const { state, cache, adapters, maxWaiting, maxRequestsPerTenant, now } = options;
  const { shares } = state;
  const byId = new Map<number, Sequence>();
  const fetching = new Map<Sequence, PageFetch>();
  let numRefused = 0;
  let numExpired = 0;
  /** No request expires before; earlier than the next where that request has ended. */
  let nextExpiryMs = Infinity;
  const expiryOf = ({ request, addedAtMs }: Sequence): number => addedAtMs + (request.timeoutMs ?? Infinity);

  function forget(sequence: Sequence, isFailed: boolean): void {
    byId.delete(sequence.request.id);
    adapters.unpin(sequence.request.adapters);
    // During a step the kernels may still read them.
    if (!options.isStepping()) adapters.sweep();
    shares.leave(sequence.request.tenant);
    const index = state.running.indexOf(sequence);
    if (index >= 0) state.running.splice(index, 1);
    else state.waiting.remove(sequence);
    fetching.get(sequence)?.cancel();
    fetching.delete(sequence);
    sequence.pages.end();
    options.onEnd(sequence, isFailed);
  }

  function finish(sequence: Sequence): void {
    sequence.pages.release(sequence.cacheKeys, sequence.numComputed);
    forget(sequence, false);
  }

  function refuseWhenFull({ tenant }: EngineRequest): void {
    const numWaiting = state.waiting.length + fetching.size;
    const numRequests = shares.numRequests(tenant);
    if (numWaiting < maxWaiting && numRequests < maxRequestsPerTenant) return;
    numRefused++;
    const message =
      numWaiting >= maxWaiting
        ? `${numWaiting} requests are waiting; the limit is ${maxWaiting}`
        : `this tenant has ${numRequests} active requests; the limit is ${maxRequestsPerTenant}`;
    const limits = numWaiting >= maxWaiting ? { numWaiting, maxWaiting } : { numRequests, maxRequestsPerTenant };
    throw new RuvLLMError('overloaded', message, { data: limits, isRetryable: true });
  }

  return {
    byId,
    fetching,
    get numRefused() {
      return numRefused;
    },
    get numExpired() {
      return numExpired;
    },
    add(request) {
      assert(!byId.has(request.id), `request id ${request.id} already exists`);
      refuseWhenFull(request);
      adapters.pin(request.adapters);
      const sequence = createSequence(request, cache, state.pageTokens, now());
      shares.enter(request.tenant);
      byId.set(request.id, sequence);
      nextExpiryMs = Math.min(nextExpiryMs, expiryOf(sequence));
      const fetch = cache.fetchShared(request, sequence.cacheKeys);
      if (fetch === null) state.waiting.add(sequence);
      else fetching.set(sequence, fetch);
    },
    queueFetched() {
      for (const [sequence, fetch] of fetching) {
        if (!fetch.isDone) continue;
        fetching.delete(sequence);
        state.waiting.add(sequence);
      }
    },
    finish,
    fail(sequence, error) {
      sequence.pages.discard(); // its last pages may be invalid
      forget(sequence, true);
      return { type: 'failed', id: sequence.request.id, error: serializeError(error) };
    },
    expire() {
      const nowMs = now();
      const events: EngineEvent[] = [];
      if (nowMs < nextExpiryMs) return events;
      nextExpiryMs = Infinity;
      for (const sequence of byId.values()) {
        const { id, timeoutMs } = sequence.request;
        const elapsedMs = nowMs - sequence.addedAtMs;
        if (timeoutMs === null || elapsedMs < timeoutMs) {
          nextExpiryMs = Math.min(nextExpiryMs, expiryOf(sequence));
          continue;
        }
        numExpired++;
        const generatedTokens = numGenerated(sequence);
        const message = `timed out after ${Math.round(elapsedMs)} ms with ${generatedTokens} tokens generated; the limit is ${timeoutMs} ms`;
        const data = { elapsedMs, timeoutMs, generatedTokens };
        finish(sequence);
        const error = serializeError(new RuvLLMError('deadline_exceeded', message, { data, isRetryable: true }));
        events.push({ type: 'failed', id, error });
      }
      return events;
    },
  };
}
