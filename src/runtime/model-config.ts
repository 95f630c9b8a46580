import type { Memory } from '../memory/memory.ts';
import type { Learning } from './learning/learning.ts';
import { RuvLLMError } from '../core/errors.ts';
import {
  booleanOption,
  choiceOption,
  instanceOption,
  integerOption,
  optional,
  resolveOptions,
  stringOption,
} from '../core/options.ts';
import type { ModelSpec, RepackCacheChoice, SharedSpec, SpeculationChoice, SpillSpec } from '../engine/protocol.ts';
import { isKernelChoice, KERNEL_CHOICES, type KernelChoice } from '../kernels/kernel-choice.ts';
import type { FloatKvPrecision } from '../kernels/contract.ts';
import type { GpuLayers } from '../models/choose-split.ts';
import type { BlockEvent } from '../kv-cache/block-log.ts';
import type { KvPacking } from '../kv-cache/kv-policy.ts';
import type { SamplingDefaults } from '../sampling/generate-params.ts';
import { samplingOption } from './default-sampling.ts';
import { DEFAULT_STEP_TIMEOUT_MS } from './engine-client.ts';
import { nameOption } from './name-option.ts';
import { type KvSharedConfig, kvSharedOption, type ResolvedKvShared } from './kv-shared-option.ts';
import { type KvSpillConfig, kvSpillOption, type ResolvedKvSpill } from './kv-spill-option.ts';

const isGpuLayers = (value: unknown): value is GpuLayers =>
  value === 'auto' || (Number.isSafeInteger(value) && (value as number) >= 0);
const GPU_LAYERS = instanceOption('auto, or a number of layers from 0', isGpuLayers);
const KERNELS = instanceOption(KERNEL_CHOICES, isKernelChoice);

/** Compute device; this version supports only `cpu`, the others fail with `unsupported`. */
export type DeviceType = 'cpu' | 'metal' | 'cuda';

/** The progress of downloading or loading a model. */
export interface ModelProgress {
  /** `load` reads weights into memory; the others belong to the download. */
  readonly phase: 'resolve' | 'wait' | 'check' | 'download' | 'extract' | 'load';
  readonly doneBytes: number;
  /** null while unknown. */
  readonly totalBytes: number | null;
}

/** How a model is loaded; every field has a default. */
export interface ModelConfig {
  /** Maximum tokens of prompt and answer. Default: the model's context, at most 4096 and what the memory budget holds. */
  maxContext?: number;
  /** Tokens in the KV cache at full precision, across all sequences. Default: what the memory budget holds. */
  kvCacheTokens?: number;
  /** Memory budget for KV pages and adapters, in bytes. Default: enough for a few sequences of `maxContext`. */
  memoryBudgetBytes?: number;
  /** How KV pages before the last 256 tokens are packed. Default `auto`: packed if measurements show no harm. */
  kvPacking?: KvPacking;
  /** Whether requests of a tenant share a prefix cache. Default true. */
  prefixCache?: boolean;
  /** Spills KV pages and sessions to a folder, also for the next start. Default null: no spill. */
  kvSpill?: KvSpillConfig | null;
  /** Shares KV pages with other nodes by a folder or an S3-compatible storage. Default null: it does not. */
  kvShared?: KvSharedConfig | null;
  /** Reports the contents of the prefix cache, for routers elsewhere. Default: it does not. */
  blockEvents?: BlockEventConfig | null;
  /** Maximum sessions in memory; the least recently used is dropped first. Default 10 000. */
  maxSessions?: number;
  /** Precision of the KV cache. Default `f16`; `f32` doubles its memory. */
  kvPrecision?: FloatKvPrecision;
  /** Compute threads. Default: the CPUs available to this process. */
  numThreads?: number;
  /** Kernels. Default `auto`: the fastest on this machine. */
  kernels?: KernelChoice;
  /**
   * Layers whose weights and KV pages are on the GPU, the last ones of the model; the others are computed by the processor.
   * Requires kernels `webgpu`. Default `auto`: as many as fit into `gpuMemoryBytes`.
   */
  gpuLayers?: number | 'auto';
  /** Maximum bytes on the GPU. Requires kernels `webgpu`. Default: no limit, because WebGPU does not tell how much memory a GPU has. */
  gpuMemoryBytes?: number;
  /** Maximum tokens per step. Default 512. */
  maxBatchTokens?: number;
  /** Maximum sequences in a batch; more wait in the queue. Default 8. */
  maxSequences?: number;
  /** Maximum requests in the queue; more fail with `overloaded`. Default 1024. */
  maxWaiting?: number;
  /** Maximum sequences of one tenant in a batch. Default: no separate limit. */
  maxRunningPerTenant?: number;
  /** Maximum requests of one tenant, including the queue. Default: no separate limit. */
  maxRequestsPerTenant?: number;
  /** A busy engine that finishes no step for this many milliseconds is ended; its calls fail with `engine_stalled`. Default 120 000. */
  stepTimeoutMs?: number;
  /** Runs the engine in its own process, so that a fault of native code ends its calls (`engine_crashed`), not the program. Default false: in a thread. */
  engineProcess?: boolean;
  /**
   * Speculative decoding: guesses tokens from the prompt, earlier answers and grammars, and verifies several in one step. Changes the
   * speed, never the text. Default `auto`: where it pays, by measurement; `on`: wherever there is a guess.
   */
  speculation?: SpeculationChoice;
  /**
   * A smaller model with the same vocabulary that drafts tokens: a path, a reference, or `auto` for the smallest such model in the cache.
   * One that cannot be used is reported, and the model runs without it. Default: none.
   */
  draftModel?: string;
  /** Maximum memory in bytes; a larger model fails with `out_of_memory`. Default: no limit. */
  memoryLimitBytes?: number;
  /** Sampling of calls that set none of it. Default: as the model file recommends, otherwise as its precision allows. */
  sampling?: Partial<SamplingDefaults> | null;
  /** Caches repacked weights on disk for a faster start. Default `auto`: if the gain is large. */
  repackCache?: RepackCacheChoice;
  /** The memory for recall and the audit log of every call. The caller closes it. Default: none. */
  memory?: Memory;
  /** Learning from feedback: stores calls of this model and applies what it learned. The caller closes it. Default: none. */
  learning?: Learning;
  /** A chat template instead of the file's: Jinja, or the name of a built-in one such as `chatml`. Default: the file's. */
  chatTemplate?: string;
  /** The projector of a model that sees images: its mmproj GGUF file, of the type `idefics3` (SmolVLM). Default: none. */
  mmproj?: string;
  /** The model's name in memory and learning. Default: the name in its file, otherwise its path. */
  modelName?: string;
  /** Default `cpu`. */
  device?: DeviceType;
  /** Hugging Face token for gated models. */
  hfToken?: string;
  onProgress?: (progress: ModelProgress) => void;
  /** Aborts download and loading. */
  signal?: AbortSignal;
}

/** Who is told about the contents of the prefix cache. */
export interface BlockEventConfig {
  /** Part of every hash; nodes with the same salt have the same hashes. */
  readonly salt: string;
  /** Called with the hash of the model file when it is loaded. Default: nothing. */
  readonly onLoaded?: (modelHash: string) => void;
  /** Called with changes in order; `cleared` when the engine ends. */
  readonly onEvents: (events: readonly BlockEvent[]) => void;
}

export interface ResolvedModelConfig {
  readonly blockEvents: BlockEventConfig | null;
  readonly maxContext: number | null;
  readonly kvCacheTokens: number | null;
  readonly memoryBudgetBytes: number | null;
  readonly kvPacking: KvPacking;
  readonly prefixCache: boolean;
  readonly kvSpill: ResolvedKvSpill | null;
  readonly kvShared: ResolvedKvShared | null;
  readonly maxSessions: number;
  readonly kvPrecision: FloatKvPrecision;
  readonly numThreads: number;
  readonly kernels: KernelChoice;
  /** null: not set. */
  readonly gpuLayers: GpuLayers | null;
  readonly gpuMemoryBytes: number | null;
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  readonly maxWaiting: number;
  readonly maxRunningPerTenant: number | null;
  readonly maxRequestsPerTenant: number | null;
  readonly stepTimeoutMs: number;
  readonly engineProcess: boolean;
  readonly speculation: SpeculationChoice;
  readonly draftModel: string | null;
  readonly memoryLimitBytes: number | null;
  readonly sampling: Partial<SamplingDefaults> | null;
  readonly repackCache: RepackCacheChoice;
  readonly memory: Memory | null;
  readonly learning: Learning | null;
  readonly chatTemplate: string | null;
  readonly mmproj: string | null;
  readonly modelName: string | null;
  readonly device: DeviceType;
  readonly hfToken: string | null;
  readonly onProgress: ((progress: ModelProgress) => void) | null;
  readonly signal: AbortSignal | null;
}

/** Caches and tables grow with these, so they are bounded. */
const MAX_CONTEXT = 2 ** 24;
const MAX_THREADS = 256;
const MAX_BATCH_TOKENS = 8192;
const MAX_SEQUENCES = 256;
const MAX_REQUESTS = 2 ** 20;
const MAX_SESSIONS = 2 ** 20;
const DEFAULT_CONTEXT = 4096;
const MAX_STEP_TIMEOUT_MS = 86_400_000;

const isLearning = (value: unknown): value is Learning => typeof (value as Learning | null)?.observe === 'function';
const isBlockEventConfig = (value: unknown): value is BlockEventConfig =>
  typeof (value as BlockEventConfig | null)?.onEvents === 'function' &&
  typeof (value as BlockEventConfig).salt === 'string';
const isMemory = (value: unknown): value is Memory => typeof (value as Memory | null)?.audit?.enqueue === 'function';

/** Checks a config; `numCpus` is the default number of threads. */
export function resolveModelConfig(
  config: ModelConfig | undefined,
  { numCpus }: { numCpus: number },
): ResolvedModelConfig {
  const resolved = resolveOptions<ResolvedModelConfig>('model config', config, {
    maxContext: optional(integerOption(0, 1, MAX_CONTEXT)),
    kvCacheTokens: optional(integerOption(0, 1, MAX_CONTEXT)),
    memoryBudgetBytes: optional(integerOption(0, 1, Number.MAX_SAFE_INTEGER)),
    kvPacking: choiceOption<KvPacking>('auto', ['auto', 'off', 'q8', 'q4']),
    prefixCache: booleanOption(true),
    kvSpill: kvSpillOption,
    kvShared: kvSharedOption,
    blockEvents: optional(instanceOption('a salt and a function', isBlockEventConfig)),
    maxSessions: integerOption(10_000, 1, MAX_SESSIONS),
    kvPrecision: choiceOption<FloatKvPrecision>('f16', ['f16', 'f32']),
    numThreads: integerOption(Math.min(numCpus, MAX_THREADS), 1, MAX_THREADS),
    kernels: (value, name) => (value === undefined ? 'auto' : KERNELS(value, name)),
    gpuLayers: (value, name) => (value === undefined ? null : GPU_LAYERS(value, name)),
    gpuMemoryBytes: optional(integerOption(0, 1, Number.MAX_SAFE_INTEGER)),
    maxBatchTokens: integerOption(512, 1, MAX_BATCH_TOKENS),
    maxSequences: integerOption(8, 1, MAX_SEQUENCES),
    maxWaiting: integerOption(1024, 1, MAX_REQUESTS),
    maxRunningPerTenant: optional(integerOption(0, 1, MAX_SEQUENCES)),
    maxRequestsPerTenant: optional(integerOption(0, 1, MAX_REQUESTS)),
    stepTimeoutMs: integerOption(DEFAULT_STEP_TIMEOUT_MS, 100, MAX_STEP_TIMEOUT_MS),
    engineProcess: booleanOption(false),
    speculation: choiceOption<SpeculationChoice>('auto', ['auto', 'on', 'off']),
    draftModel: stringOption(null),
    memoryLimitBytes: optional(integerOption(0, 1, Number.MAX_SAFE_INTEGER)),
    sampling: samplingOption,
    repackCache: choiceOption<RepackCacheChoice>('auto', ['auto', 'on', 'off']),
    memory: optional(instanceOption('a memory', isMemory)),
    learning: optional(instanceOption('the result of openLearning', isLearning)),
    chatTemplate: stringOption(null),
    mmproj: stringOption(null),
    modelName: optional(nameOption),
    device: choiceOption<DeviceType>('cpu', ['cpu', 'metal', 'cuda']),
    hfToken: stringOption(null),
    onProgress: optional(
      instanceOption('a function', (value): value is (progress: ModelProgress) => void => typeof value === 'function'),
    ),
    signal: optional(instanceOption('an AbortSignal', isAbortSignal)),
  });
  checkGpuOptions(resolved);
  if (resolved.device !== 'cpu') {
    throw new RuvLLMError(
      'unsupported',
      `device "${resolved.device}" is not supported; this version supports only "cpu"`,
    );
  }
  return resolved;
}

/** Without a GPU, a number of layers is probably a mistake. */
function checkGpuOptions(config: ResolvedModelConfig): void {
  for (const option of ['gpuLayers', 'gpuMemoryBytes'] as const) {
    const value = config[option];
    if (value === null || config.kernels === 'webgpu') continue;
    throw new RuvLLMError(
      'invalid_option',
      `option "${option}" is ${value}; it requires the kernels webgpu, got ${config.kernels}`,
      { data: { option, value, kernels: config.kernels } },
    );
  }
}

/** The engine's part of a config, with the context length of the file. */
export function planSpec(
  config: ResolvedModelConfig,
  file: { path: string; contextLength: number },
  spill: SpillSpec | null,
  shared: SharedSpec | null = null,
): ModelSpec {
  return {
    path: file.path,
    kernels: config.kernels,
    gpuLayers: config.gpuLayers ?? 'auto',
    gpuMemoryBytes: config.gpuMemoryBytes,
    numThreads: config.numThreads,
    kvPrecision: config.kvPrecision,
    maxContext: planContext(config, file.contextLength),
    isContextGiven: config.maxContext !== null,
    maxBatchTokens: config.maxBatchTokens,
    maxSequences: Math.min(config.maxSequences, config.maxBatchTokens),
    kvCacheTokens: config.kvCacheTokens,
    memoryBudgetBytes: config.memoryBudgetBytes,
    kvPacking: config.kvPacking,
    prefixCache: config.prefixCache,
    spill,
    shared,
    blockSalt: config.blockEvents?.salt ?? null,
    maxWaiting: config.maxWaiting,
    maxRunningPerTenant: config.maxRunningPerTenant,
    maxRequestsPerTenant: config.maxRequestsPerTenant,
    memoryLimitBytes: config.memoryLimitBytes,
    speculation: config.speculation,
    // A path by now: references are resolved before.
    draftPath: config.speculation === 'off' ? null : config.draftModel,
    repackCache: config.repackCache,
  };
}

function planContext({ maxContext, kvCacheTokens }: ResolvedModelConfig, contextLength: number): number {
  if (maxContext === null) return Math.min(contextLength, DEFAULT_CONTEXT, kvCacheTokens ?? Infinity);
  if (maxContext > contextLength) {
    throw new RuvLLMError(
      'invalid_option',
      `option "maxContext" is ${maxContext}; the model was trained for ${contextLength} tokens`,
      { data: { option: 'maxContext', maxContext, contextLength } },
    );
  }
  if (kvCacheTokens !== null && kvCacheTokens < maxContext) {
    throw new RuvLLMError(
      'invalid_option',
      `option "kvCacheTokens" is ${kvCacheTokens}; one sequence of maxContext ${maxContext} does not fit`,
      { data: { option: 'kvCacheTokens', kvCacheTokens, maxContext } },
    );
  }
  return maxContext;
}

/** Checked by shape: a signal may come from another realm or a polyfill. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as AbortSignal).aborted === 'boolean' &&
    typeof (value as AbortSignal).addEventListener === 'function'
  );
}
