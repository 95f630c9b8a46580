import type { Adapter } from '../adapters/types.ts';
import type { SerializedError } from '../core/errors.ts';
import type { FloatKvPrecision, PackedKvPrecision, KernelChoice } from '../kernels/contract.ts';
import type { BlockEvent } from '../kv-cache/block-log.ts';
import type { KvPacking } from '../kv-cache/kv-policy.ts';
import type { SharedPlace } from '../kv-cache/shared-store.ts';
import type { Retention } from '../kv-cache/types.ts';
import type { GpuLayers } from '../models/choose-split.ts';
import type { DecoderShape, LoadedModel } from '../models/types.ts';
import type { GrammarSource } from '../sampling/grammar/index.ts';
import type { SamplingParams } from '../sampling/types.ts';
import type { TokenTableData, VocabularyData } from './constraints.ts';
import type { Pooling } from './pooling.ts';
import type { EngineEvent, EngineStats, PrefixQuery, PrefixReport, RequestAdapter, SequenceImage } from './types.ts';

/**
 * Messages between the main thread and the engine's worker: plain data that survives `postMessage`, delivered in order,
 * so `stats` after `abort` shows the freed pages.
 */
export type ClientMessage =
  | { readonly type: 'load'; readonly spec: ModelSpec }
  | { readonly type: 'generate'; readonly request: GenerateRequest }
  | { readonly type: 'embed'; readonly request: EmbedRequest }
  | { readonly type: 'examine'; readonly request: ExamineRequest }
  /** One of these two comes before the first request with a grammar. */
  | { readonly type: 'vocabulary'; readonly vocabulary: VocabularyData }
  | { readonly type: 'tokenTable'; readonly table: TokenTableData }
  | { readonly type: 'abort'; readonly id: number }
  /** Ids are never reused, not even after an unload. */
  | { readonly type: 'loadAdapter'; readonly id: number; readonly adapter: Adapter }
  /** Requests sent before keep the adapter until they end. */
  | { readonly type: 'unloadAdapter'; readonly id: number }
  | { readonly type: 'stats'; readonly callId: number }
  /** Asks whether steps finish. */
  | { readonly type: 'pulse' }
  | { readonly type: 'prefixes'; readonly callId: number; readonly query: PrefixQuery }
  | { readonly type: 'cachedTokens'; readonly callId: number; readonly prompt: CachedPrompt }
  /** Drops a tenant's pages, and with `isWhole` its requests and its key on disk. */
  | { readonly type: 'eraseTenant'; readonly callId: number; readonly tenant: string; readonly isWhole: boolean }
  | { readonly type: 'countTenant'; readonly callId: number; readonly tenant: string }
  | { readonly type: 'dispose' };

export type ServerMessage =
  | { readonly type: 'progress'; readonly loadedBytes: number; readonly totalBytes: number }
  | { readonly type: 'loaded'; readonly model: ModelReport }
  /** The device was lost; from now on another engine computes, which this report describes. */
  | { readonly type: 'replaced'; readonly model: ModelReport }
  | { readonly type: 'loadFailed'; readonly error: SerializedError }
  /** All events of one step: one message per step, however many sequences it has. */
  | { readonly type: 'events'; readonly events: readonly EngineEvent[] }
  | { readonly type: 'stats'; readonly callId: number; readonly stats: EngineStats }
  | { readonly type: 'prefixes'; readonly callId: number; readonly report: PrefixReport }
  | { readonly type: 'cachedTokens'; readonly callId: number; readonly numTokens: number }
  /** `error`: why data of the tenant may be left. */
  | { readonly type: 'tenantErased'; readonly callId: number; readonly error: SerializedError | null }
  | { readonly type: 'tenantCounted'; readonly callId: number; readonly numItems: number }
  | { readonly type: 'adapterLoaded'; readonly id: number; readonly sizeBytes: number }
  | { readonly type: 'adapterFailed'; readonly id: number; readonly error: SerializedError }
  /** Changes of the prefix cache, in order; `cleared` after the engine was replaced. */
  | { readonly type: 'blocks'; readonly events: readonly BlockEvent[] }
  /** `numTurns` grows with every step and every part of a grammar. */
  | { readonly type: 'pulse'; readonly numTurns: number; readonly isIdle: boolean }
  | { readonly type: 'disposed' };

/** Which model to open, and the sizes of its buffers. */
export interface ModelSpec {
  readonly path: string;
  readonly kernels: KernelChoice;
  /** Layers on the GPU, for `webgpu`; `auto`: as many as fit. */
  readonly gpuLayers: GpuLayers;
  /** Maximum bytes on the GPU; null: unknown. */
  readonly gpuMemoryBytes: number | null;
  readonly numThreads: number;
  /** Maximum tokens of one sequence. */
  readonly maxContext: number;
  /** False: `maxContext` is a default and shrinks to the memory budget. */
  readonly isContextGiven: boolean;
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  /** Tokens the KV pages hold unpacked; null: as many as the budget allows. */
  readonly kvCacheTokens: number | null;
  /** Maximum bytes of KV pages and adapters together; null: derived from `kvCacheTokens`. */
  readonly memoryBudgetBytes: number | null;
  readonly kvPrecision: FloatKvPrecision;
  readonly kvPacking: KvPacking;
  /** Enables the prefix cache. */
  readonly prefixCache: boolean;
  /** Where evicted pages are spilled, also for the next start; null: nowhere. */
  readonly spill: SpillSpec | null;
  /** Storage for pages that other nodes use, too; null: none. */
  readonly shared: SharedSpec | null;
  /** Reports the contents of the prefix cache by hashes with this salt; null: it does not. */
  readonly blockSalt: string | null;
  readonly maxWaiting: number;
  /** null: unlimited. */
  readonly maxRunningPerTenant: number | null;
  readonly maxRequestsPerTenant: number | null;
  readonly memoryLimitBytes: number | null;
  readonly speculation: SpeculationChoice;
  /** A smaller model with the same vocabulary, for drafts; null: none. */
  readonly draftPath: string | null;
  readonly repackCache: RepackCacheChoice;
}

/** A folder for sealed KV pages. */
export interface SpillSpec {
  readonly folder: string;
  readonly limitBytes: number;
  /** The 32-byte key that encrypts every file in it. */
  readonly masterKey: Uint8Array;
}

/** Sealed KV pages in storage that several nodes use. */
export interface SharedSpec {
  readonly place: SharedPlace;
  /** The 32-byte key that all nodes of the fleet derive from their secret. */
  readonly masterKey: Uint8Array;
  readonly limitBytes: number;
  /** The longest a request waits for pages, and a read for the storage. */
  readonly timeoutMs: number;
}

/** Whether tokens are drafted and verified in one step; `auto`: where it pays, by measurement. */
export type SpeculationChoice = 'auto' | 'on' | 'off';

/** Whether packed weights are cached on disk; `auto`: where measurements showed a gain. */
export type RepackCacheChoice = 'auto' | 'on' | 'off';

/** A grammar whose compilation or masks would delay the other sequences; as text, because reading it takes long, too. */
export interface SlowGrammar {
  readonly type: 'slow';
  /** The JSON text of a `GrammarSource`. */
  readonly text: string;
}

/** A sequence to continue; `sampling.seed` is set. */
export interface GenerateRequest {
  /** Increases from request to request. */
  readonly id: number;
  readonly promptIds: readonly number[];
  /** Images in the prompt, in its order; default none. */
  readonly images?: readonly SequenceImage[];
  /** A text that the answer probably repeats; default none. */
  readonly expectedIds?: readonly number[];
  readonly maxTokens: number;
  readonly stopIds: readonly number[];
  readonly sampling: SamplingParams & { readonly seed: number };
  readonly tenant: string;
  readonly cachePrefix: boolean;
  readonly retention: Retention;
  readonly priority: number;
  readonly timeoutMs: number | null;
  /** The grammar of the text; null: unconstrained. */
  readonly grammar: GrammarSource | SlowGrammar | null;
  /** Automata of the grammar prepared in another thread; null: none. */
  readonly automata: Int32Array | null;
  readonly adapters: readonly RequestAdapter[];
}

/** A prompt that is looked up in the prefix cache. */
export type CachedPrompt = Pick<GenerateRequest, 'tenant' | 'promptIds' | 'images' | 'adapters'>;

/** A sequence to embed; scheduled like any other. */
export interface EmbedRequest extends Pick<GenerateRequest, 'id' | 'promptIds' | 'tenant' | 'priority' | 'timeoutMs'> {
  readonly pooling: Pooling;
}

/** Tokens to examine as if the model had generated them after the prompt; scheduled like any other, one token per step. */
export interface ExamineRequest extends Pick<
  GenerateRequest,
  'id' | 'promptIds' | 'tenant' | 'adapters' | 'priority' | 'timeoutMs' | 'cachePrefix'
> {
  readonly labels: readonly number[];
  /** How many of the likeliest tokens to report for each. */
  readonly numTop: number;
}

/** Facts about the loaded model. */
export interface ModelReport {
  readonly shape: DecoderShape;
  readonly memory: LoadedModel['memory'];
  readonly kernels: string;
  readonly numThreads: number;
  readonly numPages: number;
  readonly maxContext: number;
  /** Hash of the model file, for data that outlives the process; empty where no such data exists. */
  readonly modelHash: string;
  /** The precision of older pages, and the reason. */
  readonly kvPacking: { readonly precision: PackedKvPrecision | null; readonly reason: string };
}

export type LoadProgress = (loadedBytes: number, totalBytes: number) => void;
