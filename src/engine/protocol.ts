import type { Adapter } from '../adapters/types.ts';
import type { SerializedError } from '../core/errors.ts';
import type { FloatKvPrecision, PackedKvPrecision } from '../kernels/contract.ts';
import type { KvPacking } from '../kv-cache/kv-policy.ts';
import type { Retention } from '../kv-cache/types.ts';
import type { DecoderShape, LoadedModel } from '../models/types.ts';
import type { GrammarSource } from '../sampling/grammar/index.ts';
import type { SamplingParams } from '../sampling/types.ts';
import type { TokenTableData, VocabularyData } from './constraints.ts';
import type { Pooling } from './pooling.ts';
import type { EngineEvent, EngineStats, PrefixQuery, PrefixReport, RequestAdapter } from './types.ts';

/**
 * What the main thread and the engine's worker say to each other. Plain data only: it must survive `postMessage`.
 * Messages of one side arrive in the order they were sent, so that `stats` after `abort` shows the pages free.
 */
export type ClientMessage =
  | { readonly type: 'load'; readonly spec: ModelSpec }
  | { readonly type: 'generate'; readonly request: GenerateRequest }
  | { readonly type: 'embed'; readonly request: EmbedRequest }
  | { readonly type: 'examine'; readonly request: ExamineRequest }
  /** One of the two before the first request with a grammar. */
  | { readonly type: 'vocabulary'; readonly vocabulary: VocabularyData }
  | { readonly type: 'tokenTable'; readonly table: TokenTableData }
  | { readonly type: 'abort'; readonly id: number }
  /** `id` is never used again, not even after an unload. */
  | { readonly type: 'loadAdapter'; readonly id: number; readonly adapter: Adapter }
  /** Requests sent before keep it to their end. */
  | { readonly type: 'unloadAdapter'; readonly id: number }
  | { readonly type: 'stats'; readonly callId: number }
  | { readonly type: 'prefixes'; readonly callId: number; readonly query: PrefixQuery }
  | { readonly type: 'dispose' };

export type ServerMessage =
  | { readonly type: 'progress'; readonly loadedBytes: number; readonly totalBytes: number }
  | { readonly type: 'loaded'; readonly model: ModelReport }
  | { readonly type: 'loadFailed'; readonly error: SerializedError }
  /** All that one step has to say: one message a step, however many sequences are in it. */
  | { readonly type: 'events'; readonly events: readonly EngineEvent[] }
  | { readonly type: 'stats'; readonly callId: number; readonly stats: EngineStats }
  | { readonly type: 'prefixes'; readonly callId: number; readonly report: PrefixReport }
  | { readonly type: 'adapterLoaded'; readonly id: number; readonly sizeBytes: number }
  | { readonly type: 'adapterFailed'; readonly id: number; readonly error: SerializedError }
  | { readonly type: 'disposed' };

/** Which model to open, and how large its buffers are to be. */
export interface ModelSpec {
  readonly path: string;
  readonly kernels: KernelChoice;
  readonly numThreads: number;
  /** Most tokens of one sequence. */
  readonly maxContext: number;
  /** False: `maxContext` is a default, and shrinks to what the budget holds. */
  readonly isContextGiven: boolean;
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  /** Tokens the KV pages shall hold unpacked; null: as many as the budget has room for. */
  readonly kvCacheTokens: number | null;
  /** Most bytes of KV pages and adapters together; null: as `kvCacheTokens` needs. */
  readonly memoryBudgetBytes: number | null;
  readonly kvPrecision: FloatKvPrecision;
  readonly kvPacking: KvPacking;
  /** Whether computed prefixes stay known to later requests. */
  readonly prefixCache: boolean;
  /** Where pages are kept that have no room, and for the next start; null: nowhere. */
  readonly spill: SpillSpec | null;
  readonly maxWaiting: number;
  /** null: no limit of their own. */
  readonly maxRunningPerTenant: number | null;
  readonly maxRequestsPerTenant: number | null;
  readonly memoryLimitBytes: number | null;
  readonly repackCache: RepackCacheChoice;
}

/** A folder for sealed KV pages. */
export interface SpillSpec {
  readonly folder: string;
  readonly limitBytes: number;
  /** 32 bytes that seal everything in it. */
  readonly masterKey: Uint8Array;
}

/** Whether packed weights are kept on disk; `auto`: where that was measured to pay. */
export type RepackCacheChoice = 'auto' | 'on' | 'off';

/** Which kernels compute; `auto` is the fastest that runs here. */
export type KernelChoice = 'auto' | 'native' | 'wasm' | 'reference';

/** A sequence to continue; `sampling.seed` is set. */
export interface GenerateRequest {
  /** Rises from request to request. */
  readonly id: number;
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  readonly stopIds: readonly number[];
  readonly sampling: SamplingParams & { readonly seed: number };
  readonly tenant: string;
  readonly cachePrefix: boolean;
  readonly retention: Retention;
  readonly priority: number;
  readonly timeoutMs: number | null;
  /** What the text must be; null: anything. */
  readonly grammar: GrammarSource | null;
  /** What another thread built of the grammar already; null: nothing. */
  readonly automata: Int32Array | null;
  readonly adapters: readonly RequestAdapter[];
}

/** A sequence to make a vector of; it counts among the others. */
export interface EmbedRequest extends Pick<GenerateRequest, 'id' | 'promptIds' | 'tenant' | 'priority' | 'timeoutMs'> {
  readonly pooling: Pooling;
}

/** Tokens to be looked at as if the model had said them after the prompt; it counts among the others, a token a step. */
export interface ExamineRequest extends Pick<
  GenerateRequest,
  'id' | 'promptIds' | 'tenant' | 'adapters' | 'priority' | 'timeoutMs' | 'cachePrefix'
> {
  readonly labels: readonly number[];
  /** How many of the likeliest tokens are told of each. */
  readonly numTop: number;
}

/** What the worker tells of the model it loaded. */
export interface ModelReport {
  readonly shape: DecoderShape;
  readonly memory: LoadedModel['memory'];
  readonly kernels: string;
  readonly numThreads: number;
  readonly numPages: number;
  readonly maxContext: number;
  /** Of the model's file, for what outlives the process; empty where nothing does. */
  readonly modelHash: string;
  /** How older pages are rounded, and why so. */
  readonly kvPacking: { readonly precision: PackedKvPrecision | null; readonly reason: string };
}

export type LoadProgress = (loadedBytes: number, totalBytes: number) => void;
