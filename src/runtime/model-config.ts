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
import type { ModelSpec, RepackCacheChoice, SpillSpec } from '../engine/protocol.ts';
import type { KernelChoice } from '../kernels/contract.ts';
import type { FloatKvPrecision } from '../kernels/contract.ts';
import type { KvPacking } from '../kv-cache/kv-policy.ts';
import { nameOption } from './name-option.ts';
import { type KvSpillConfig, kvSpillOption, type ResolvedKvSpill } from './kv-spill-option.ts';

/** Compute device; only `cpu` computes in this version, the others are refused with `unsupported`. */
export type DeviceType = 'cpu' | 'metal' | 'cuda';

/** How far fetching or loading a model has come. */
export interface ModelProgress {
  /** `load` is reading weights into memory; the others belong to fetching. */
  readonly phase: 'resolve' | 'wait' | 'check' | 'download' | 'extract' | 'load';
  readonly doneBytes: number;
  /** null while it is not known. */
  readonly totalBytes: number | null;
}

/** How a model is loaded; every field has a default. */
export interface ModelConfig {
  /** Most tokens of one sequence, prompt and answer. Default: the model's own context, at most 4096 and what the budget holds. */
  maxContext?: number;
  /** Tokens the KV cache holds unpacked, for all sequences together. Default: what the budget has room for. */
  kvCacheTokens?: number;
  /** Most bytes of KV pages and adapters together. Default: enough for a few sequences of `maxContext`. */
  memoryBudgetBytes?: number;
  /** How KV pages behind the last 256 tokens are kept. Default `auto`: rounded where that was measured to be harmless. */
  kvPacking?: KvPacking;
  /** Whether a prefix computed once serves later requests of the same tenant. Default true. */
  prefixCache?: boolean;
  /** Keeps KV pages and sessions in a folder, for the next start too. Default null: nowhere. */
  kvSpill?: KvSpillConfig | null;
  /** Most sessions known at a time; the one not used for longest is forgotten first. Default 10 000. */
  maxSessions?: number;
  /** How exactly the KV cache keeps keys and values. Default `f16`; `f32` doubles its memory. */
  kvPrecision?: FloatKvPrecision;
  /** Threads that compute. Default: the CPUs this process may use. */
  numThreads?: number;
  /** Which kernels compute. Default `auto`: the fastest that runs here. */
  kernels?: KernelChoice;
  /** Most tokens computed in one step. Default 512. */
  maxBatchTokens?: number;
  /** Most sequences computed side by side; more wait. Default 8. */
  maxSequences?: number;
  /** Most requests that wait for their turn; more fail with `overloaded`. Default 1024. */
  maxWaiting?: number;
  /** Most requests of one tenant that are computed side by side. Default: no limit of its own. */
  maxRunningPerTenant?: number;
  /** Most requests of one tenant at a time, waiting ones included. Default: no limit of its own. */
  maxRequestsPerTenant?: number;
  /** Refuses to load what would take more. Default: no limit but the machine's. */
  memoryLimitBytes?: number;
  /** Keeps weights on disk as the kernels want them, to start faster. Default `auto`: where that is a large gain. */
  repackCache?: RepackCacheChoice;
  /** A memory that knows every call: it is asked where a call wishes it, and told how each ended. Closed by whoever opened it. Default: none. */
  memory?: Memory;
  /** What learns from feedback: calls of this model are kept for it, and answered with what it learned. Closed by whoever opened it. Default: none. */
  learning?: Learning;
  /** What memory and learning call the model. Default: the name in its file, else its path. */
  modelName?: string;
  /** Default `cpu`. */
  device?: DeviceType;
  /** Token for gated models on the Hugging Face hub. */
  hfToken?: string;
  onProgress?: (progress: ModelProgress) => void;
  /** Aborts fetching and loading. */
  signal?: AbortSignal;
}

export interface ResolvedModelConfig {
  readonly maxContext: number | null;
  readonly kvCacheTokens: number | null;
  readonly memoryBudgetBytes: number | null;
  readonly kvPacking: KvPacking;
  readonly prefixCache: boolean;
  readonly kvSpill: ResolvedKvSpill | null;
  readonly maxSessions: number;
  readonly kvPrecision: FloatKvPrecision;
  readonly numThreads: number;
  readonly kernels: KernelChoice;
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  readonly maxWaiting: number;
  readonly maxRunningPerTenant: number | null;
  readonly maxRequestsPerTenant: number | null;
  readonly memoryLimitBytes: number | null;
  readonly repackCache: RepackCacheChoice;
  readonly memory: Memory | null;
  readonly learning: Learning | null;
  readonly modelName: string | null;
  readonly device: DeviceType;
  readonly hfToken: string | null;
  readonly onProgress: ((progress: ModelProgress) => void) | null;
  readonly signal: AbortSignal | null;
}

/** Caches and tables grow with these, so they are bounded long before memory is. */
const MAX_CONTEXT = 2 ** 24;
const MAX_THREADS = 256;
const MAX_BATCH_TOKENS = 8192;
const MAX_SEQUENCES = 256;
const MAX_REQUESTS = 2 ** 20;
const MAX_SESSIONS = 2 ** 20;
const DEFAULT_CONTEXT = 4096;

const isLearning = (value: unknown): value is Learning => typeof (value as Learning | null)?.observe === 'function';
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
    maxSessions: integerOption(10_000, 1, MAX_SESSIONS),
    kvPrecision: choiceOption<FloatKvPrecision>('f16', ['f16', 'f32']),
    numThreads: integerOption(Math.min(numCpus, MAX_THREADS), 1, MAX_THREADS),
    kernels: choiceOption('auto', ['auto', 'native', 'wasm', 'reference']),
    maxBatchTokens: integerOption(512, 1, MAX_BATCH_TOKENS),
    maxSequences: integerOption(8, 1, MAX_SEQUENCES),
    maxWaiting: integerOption(1024, 1, MAX_REQUESTS),
    maxRunningPerTenant: optional(integerOption(0, 1, MAX_SEQUENCES)),
    maxRequestsPerTenant: optional(integerOption(0, 1, MAX_REQUESTS)),
    memoryLimitBytes: optional(integerOption(0, 1, Number.MAX_SAFE_INTEGER)),
    repackCache: choiceOption<RepackCacheChoice>('auto', ['auto', 'on', 'off']),
    memory: optional(instanceOption('a memory', isMemory)),
    learning: optional(instanceOption('what openLearning gives', isLearning)),
    modelName: optional(nameOption),
    device: choiceOption<DeviceType>('cpu', ['cpu', 'metal', 'cuda']),
    hfToken: stringOption(null),
    onProgress: optional(
      instanceOption('a function', (value): value is (progress: ModelProgress) => void => typeof value === 'function'),
    ),
    signal: optional(instanceOption('an AbortSignal', isAbortSignal)),
  });
  if (resolved.device !== 'cpu') {
    throw new RuvLLMError(
      'unsupported',
      `device "${resolved.device}" is not supported: this version computes on "cpu"`,
    );
  }
  return resolved;
}

/** The part of a config that the engine needs, with what the file says about its context filled in. */
export function planSpec(
  config: ResolvedModelConfig,
  file: { path: string; contextLength: number },
  spill: SpillSpec | null,
): ModelSpec {
  return {
    path: file.path,
    kernels: config.kernels,
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
    maxWaiting: config.maxWaiting,
    maxRunningPerTenant: config.maxRunningPerTenant,
    maxRequestsPerTenant: config.maxRequestsPerTenant,
    memoryLimitBytes: config.memoryLimitBytes,
    repackCache: config.repackCache,
  };
}

function planContext({ maxContext, kvCacheTokens }: ResolvedModelConfig, contextLength: number): number {
  if (maxContext === null) return Math.min(contextLength, DEFAULT_CONTEXT, kvCacheTokens ?? Infinity);
  if (maxContext > contextLength) {
    throw new RuvLLMError(
      'invalid_option',
      `option "maxContext" is ${maxContext}, the model was trained for ${contextLength} tokens`,
      { data: { option: 'maxContext', maxContext, contextLength } },
    );
  }
  if (kvCacheTokens !== null && kvCacheTokens < maxContext) {
    throw new RuvLLMError(
      'invalid_option',
      `option "kvCacheTokens" is ${kvCacheTokens}: one sequence of maxContext ${maxContext} would not fit`,
      { data: { option: 'kvCacheTokens', kvCacheTokens, maxContext } },
    );
  }
  return maxContext;
}

/** By shape, not by class: a signal may come from another realm or a polyfill. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as AbortSignal).aborted === 'boolean' &&
    typeof (value as AbortSignal).addEventListener === 'function'
  );
}
