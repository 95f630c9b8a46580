import { deserializeError, RuvLLMError, serializeError } from '../core/errors.ts';
import type { Adapter } from '../adapters/types.ts';
import type { TokenTableData, VocabularyData } from '../engine/constraints.ts';
import type {
  CachedPrompt,
  ClientMessage,
  EmbedRequest,
  ExamineRequest,
  GenerateRequest,
  LoadProgress,
  ModelReport,
  ModelSpec,
  ServerMessage,
} from '../engine/protocol.ts';
import type { EngineEvent, EngineStats, PrefixQuery, PrefixReport } from '../engine/types.ts';
import { DRAIN_MS } from '../kv-cache/shared-writes.ts';
import type { BlockEvent } from '../kv-cache/block-log.ts';
import { abortError } from '../core/abort.ts';
import { type Clock, systemClock, within } from '../core/clock.ts';
import { createEngineWatchdog } from './engine-watchdog.ts';

/** A connection to an engine server: in another thread, a browser worker, or the same thread in tests. */
export interface Transport {
  post(message: ClientMessage): void;
  onMessage(listener: (message: ServerMessage) => void): void;
  /** Called if the other side ends unexpectedly. */
  onLost(listener: (error: RuvLLMError) => void): void;
  /** Whether the connection keeps the process alive: yes while an answer is pending. */
  setBusy(isBusy: boolean): void;
  /** Terminates the other side. */
  close(): Promise<void>;
}

/** The main thread's side of the engine. */
export interface EngineClient {
  readonly isAlive: boolean;
  /** Called when the engine ended unexpectedly; not after `dispose`. */
  onLost(listener: (error: RuvLLMError) => void): void;
  /** Called with changes of the prefix cache; only if the spec has a `blockSalt`. */
  onBlocks(listener: (events: readonly BlockEvent[]) => void): void;
  /** The engine's present report; null before the model is loaded. Another one after the loss of a device. */
  readonly report: ModelReport | null;
  /** Resolves when the model is in memory; aborting terminates the other side. */
  load(spec: ModelSpec, options: { onProgress?: LoadProgress; signal?: AbortSignal }): Promise<ModelReport>;
  /** Starts a sequence; `onEvent` gets its events until `finished`, `failed` or `abort()`. */
  generate(request: Omit<GenerateRequest, 'id'>, onEvent: (event: EngineEvent) => void): { abort(): void };
  /** Embeds a sequence; `onEvent` gets `embedded` or `failed`. */
  embed(request: Omit<EmbedRequest, 'id'>, onEvent: (event: EngineEvent) => void): { abort(): void };
  /** Examines these tokens; `onEvent` gets `examined` or `failed`. */
  examine(request: Omit<ExamineRequest, 'id'>, onEvent: (event: EngineEvent) => void): { abort(): void };
  /** One of these two must precede the first request with a grammar. */
  sendVocabulary(vocabulary: VocabularyData): void;
  sendTokenTable(table: TokenTableData): void;
  stats(): Promise<EngineStats>;
  /** A bounded part of the prefixes that requests share. */
  prefixes(query: PrefixQuery): Promise<PrefixReport>;
  cachedTokens(prompt: CachedPrompt): Promise<number>;
  /** Drops a tenant's pages, in memory and on disk; with `isWhole` its requests fail and its key on disk is destroyed. */
  eraseTenant(tenant: string, isWhole: boolean): Promise<void>;
  /** Cached pages of a tenant, in memory and on disk. */
  countTenant(tenant: string): Promise<number>;
  /** Resolves when requests may use the adapter's id. */
  loadAdapter(adapter: Adapter): Promise<{ readonly id: number; readonly sizeBytes: number }>;
  /** Requests sent before keep it. */
  unloadAdapter(id: number): void;
  /** Fails requests in progress with `not_loaded`, frees the model and terminates the other side. */
  dispose(): Promise<void>;
}

interface Pending<T> {
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

type Handlers = { [T in ServerMessage['type']]: (message: Extract<ServerMessage, { type: T }>) => void };

export interface EngineClientOptions {
  /** A busy engine that finishes no step for this long is ended; its requests fail with `engine_stalled`. Default 120 000. */
  readonly stepTimeoutMs?: number;
  /** Default: the process's. */
  readonly clock?: Clock;
}

export const DEFAULT_STEP_TIMEOUT_MS = 120_000;

/** Time for an engine to end by itself; it may be in the middle of a step. */
const DISPOSE_MS = 5000;
/** It may store pages for other nodes before it ends. */
const DISPOSE_SHARED_MS = DISPOSE_MS + DRAIN_MS;

/** A client that owns `transport` and the engine behind it. */
export function createEngineClient(
  transport: Transport,
  { stepTimeoutMs = DEFAULT_STEP_TIMEOUT_MS, clock = systemClock }: EngineClientOptions = {},
): EngineClient {
  const listeners = new Map<number, (event: EngineEvent) => void>();
  const statsCalls = new Map<number, Pending<EngineStats>>();
  const prefixCalls = new Map<number, Pending<PrefixReport>>();
  const cachedCalls = new Map<number, Pending<number>>();
  const eraseCalls = new Map<number, Pending<void>>();
  const countCalls = new Map<number, Pending<number>>();
  const adapterCalls = new Map<number, Pending<{ id: number; sizeBytes: number }>>();
  const calls = [statsCalls, prefixCalls, cachedCalls, eraseCalls, countCalls, adapterCalls];
  let loadCall: (Pending<ModelReport> & { onProgress: LoadProgress | undefined }) | null = null;
  let disposed: Promise<void> | null = null;
  let isSharing = false;
  let onDisposed = (): void => {};
  let lost: RuvLLMError | null = null;
  let report: ModelReport | null = null;
  let onBlocks = (_events: readonly BlockEvent[]): void => {};
  const lossListeners: ((error: RuvLLMError) => void)[] = [];
  let nextId = 0;
  const watchdog = createEngineWatchdog({
    stepTimeoutMs,
    clock,
    ask: () => transport.post({ type: 'pulse' }),
    onStall() {
      const message = `the engine finished no step for ${stepTimeoutMs / 1000} s and was ended; the request can be sent again`;
      lose(new RuvLLMError('engine_stalled', message, { data: { stepTimeoutMs }, isRetryable: true }));
      void transport.close();
    },
  });

  function updateBusy(): void {
    const hasCalls = listeners.size > 0 || calls.some(({ size }) => size > 0);
    // Loading takes as long as the file is large, and `dispose` has a limit of its own.
    if (lost === null && disposed === null && loadCall === null) watchdog.setBusy(hasCalls);
    transport.setBusy(hasCalls || loadCall !== null || disposed !== null);
  }

  function lose(error: RuvLLMError): void {
    if (lost !== null) return;
    lost = error;
    watchdog.stop();
    failAll(error);
    onDisposed();
    if (disposed === null) for (const listener of lossListeners) listener(error);
  }

  function failAll(error: RuvLLMError): void {
    const serialized = serializeError(error);
    const listening = [...listeners];
    const pending = [...calls.flatMap((map) => [...map.values()]), ...(loadCall === null ? [] : [loadCall])];
    listeners.clear();
    for (const map of calls) map.clear();
    loadCall = null;
    for (const call of pending) call.reject(error);
    for (const [id, listener] of listening) listener({ type: 'failed', id, error: serialized });
    updateBusy();
  }

  function requireAlive(): void {
    if (disposed !== null) throw new RuvLLMError('not_loaded', 'the model was disposed');
    if (lost !== null) throw new RuvLLMError('not_loaded', `the engine ended: ${lost.message}`, { cause: lost });
  }

  function start(onEvent: (event: EngineEvent) => void, message: (id: number) => ClientMessage): { abort(): void } {
    requireAlive();
    const id = nextId++;
    listeners.set(id, onEvent);
    transport.post(message(id));
    updateBusy();
    return {
      abort() {
        if (!listeners.delete(id)) return;
        transport.post({ type: 'abort', id });
        updateBusy();
      },
    };
  }

  async function ask<T>(calls: Map<number, Pending<T>>, message: (callId: number) => ClientMessage): Promise<T> {
    requireAlive();
    return new Promise((resolve, reject) => {
      const callId = nextId++;
      calls.set(callId, { resolve, reject });
      transport.post(message(callId));
      updateBusy();
    });
  }

  const handlers: Handlers = {
    progress({ loadedBytes, totalBytes }) {
      try {
        loadCall?.onProgress?.(loadedBytes, totalBytes);
      } catch (error) {
        // An error of the caller's callback fails the load; thrown from here it would end the process.
        loadCall?.reject(error);
        loadCall = null;
      }
    },
    loaded({ model }) {
      report = model;
      loadCall?.resolve(model);
      loadCall = null;
    },
    replaced: ({ model }) => void (report = model),
    loadFailed({ error }) {
      loadCall?.reject(deserializeError(error));
      loadCall = null;
    },
    events({ events }) {
      for (const event of events) {
        const listener = listeners.get(event.id);
        if (event.type !== 'token') listeners.delete(event.id);
        listener?.(event);
      }
    },
    stats({ callId, stats }) {
      statsCalls.get(callId)?.resolve(stats);
      statsCalls.delete(callId);
    },
    prefixes({ callId, report }) {
      prefixCalls.get(callId)?.resolve(report);
      prefixCalls.delete(callId);
    },
    cachedTokens({ callId, numTokens }) {
      cachedCalls.get(callId)?.resolve(numTokens);
      cachedCalls.delete(callId);
    },
    tenantErased({ callId, error }) {
      const call = eraseCalls.get(callId);
      if (error === null) call?.resolve();
      else call?.reject(deserializeError(error));
      eraseCalls.delete(callId);
    },
    tenantCounted({ callId, numItems }) {
      countCalls.get(callId)?.resolve(numItems);
      countCalls.delete(callId);
    },
    adapterLoaded({ id, sizeBytes }) {
      adapterCalls.get(id)?.resolve({ id, sizeBytes });
      adapterCalls.delete(id);
    },
    adapterFailed({ id, error }) {
      adapterCalls.get(id)?.reject(deserializeError(error));
      adapterCalls.delete(id);
    },
    blocks: ({ events }) => onBlocks(events),
    pulse: (pulse) => watchdog.onPulse(pulse),
    disposed: () => onDisposed(),
  };

  transport.onMessage((message) => {
    (handlers[message.type] as (message: ServerMessage) => void)(message);
    updateBusy();
  });
  transport.onLost(lose);

  return {
    get isAlive() {
      return lost === null && disposed === null;
    },
    get report() {
      return report;
    },
    onLost: (listener) => void lossListeners.push(listener),
    onBlocks: (listener) => void (onBlocks = listener),
    async load(spec, { onProgress, signal }) {
      requireAlive();
      isSharing = spec.shared !== null;
      if (signal?.aborted) throw abortError(signal);
      const onAbort = (): void => {
        lost = abortError(signal!);
        failAll(lost);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      try {
        return await new Promise<ModelReport>((resolve, reject) => {
          loadCall = { resolve, reject, onProgress };
          transport.post({ type: 'load', spec });
          updateBusy();
        });
      } catch (error) {
        await transport.close();
        throw error;
      } finally {
        signal?.removeEventListener('abort', onAbort);
      }
    },
    sendVocabulary(vocabulary) {
      requireAlive();
      transport.post({ type: 'vocabulary', vocabulary });
    },
    sendTokenTable(table) {
      requireAlive();
      transport.post({ type: 'tokenTable', table });
    },
    generate: (request, onEvent) => start(onEvent, (id) => ({ type: 'generate', request: { ...request, id } })),
    examine: (request, onEvent) => start(onEvent, (id) => ({ type: 'examine', request: { ...request, id } })),
    embed: (request, onEvent) => start(onEvent, (id) => ({ type: 'embed', request: { ...request, id } })),
    stats: () => ask(statsCalls, (callId) => ({ type: 'stats', callId })),
    prefixes: (query) => ask(prefixCalls, (callId) => ({ type: 'prefixes', callId, query })),
    cachedTokens: (prompt) => ask(cachedCalls, (callId) => ({ type: 'cachedTokens', callId, prompt })),
    eraseTenant: (tenant, isWhole) => ask(eraseCalls, (callId) => ({ type: 'eraseTenant', callId, tenant, isWhole })),
    countTenant: (tenant) => ask(countCalls, (callId) => ({ type: 'countTenant', callId, tenant })),
    loadAdapter: (adapter) => ask(adapterCalls, (id) => ({ type: 'loadAdapter', id, adapter })),
    unloadAdapter(id) {
      requireAlive();
      transport.post({ type: 'unloadAdapter', id });
    },
    dispose() {
      // A load cannot be interrupted by a message, so the thread is terminated.
      const canAnswer = lost === null && loadCall === null;
      watchdog.stop();
      disposed ??= within(
        clock,
        isSharing ? DISPOSE_SHARED_MS : DISPOSE_MS,
        new Promise<void>((resolve) => {
          onDisposed = resolve;
          if (canAnswer) transport.post({ type: 'dispose' });
          else resolve();
        }),
      ).then(() => transport.close());
      failAll(new RuvLLMError('not_loaded', 'the model was disposed'));
      return disposed;
    },
  };
}
