import { RuvLLMError } from '../core/errors.ts';
import {
  choiceOption,
  instanceOption,
  integerOption,
  optional,
  resolveOptions,
  stringOption,
} from '../core/options.ts';
import type { KernelChoice, ModelSpec, RepackCacheChoice } from '../engine/protocol.ts';
import type { FloatKvPrecision } from '../kernels/contract.ts';

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
  /** Most tokens of one sequence, prompt and answer. Default: the model's own context, at most 4096. */
  maxContext?: number;
  /** Tokens the KV cache holds for all sequences together. Default: `maxContext`, or up to 4096 for short contexts. */
  kvCacheTokens?: number;
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
  /** Refuses to load what would take more. Default: no limit but the machine's. */
  memoryLimitBytes?: number;
  /** Keeps weights on disk as the kernels want them, to start faster. Default `auto`: where that is a large gain. */
  repackCache?: RepackCacheChoice;
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
  readonly kvPrecision: FloatKvPrecision;
  readonly numThreads: number;
  readonly kernels: KernelChoice;
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  readonly memoryLimitBytes: number | null;
  readonly repackCache: RepackCacheChoice;
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
const DEFAULT_CONTEXT = 4096;

/** Checks a config; `numCpus` is the default number of threads. */
export function resolveModelConfig(
  config: ModelConfig | undefined,
  { numCpus }: { numCpus: number },
): ResolvedModelConfig {
  const resolved = resolveOptions<ResolvedModelConfig>('model config', config, {
    maxContext: optional(integerOption(0, 1, MAX_CONTEXT)),
    kvCacheTokens: optional(integerOption(0, 1, MAX_CONTEXT)),
    kvPrecision: choiceOption<FloatKvPrecision>('f16', ['f16', 'f32']),
    numThreads: integerOption(Math.min(numCpus, MAX_THREADS), 1, MAX_THREADS),
    kernels: choiceOption('auto', ['auto', 'native', 'wasm', 'reference']),
    maxBatchTokens: integerOption(512, 1, MAX_BATCH_TOKENS),
    maxSequences: integerOption(8, 1, MAX_SEQUENCES),
    memoryLimitBytes: optional(integerOption(0, 1, Number.MAX_SAFE_INTEGER)),
    repackCache: choiceOption<RepackCacheChoice>('auto', ['auto', 'on', 'off']),
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
export function planSpec(config: ResolvedModelConfig, file: { path: string; contextLength: number }): ModelSpec {
  const maxContext = config.maxContext ?? Math.min(file.contextLength, DEFAULT_CONTEXT);
  if (maxContext > file.contextLength) {
    throw new RuvLLMError(
      'invalid_option',
      `option "maxContext" is ${maxContext}, the model was trained for ${file.contextLength} tokens`,
      { data: { option: 'maxContext', maxContext, contextLength: file.contextLength } },
    );
  }
  // A model with a short context still serves several sequences side by side, for little memory.
  const sideBySide = Math.min(maxContext * config.maxSequences, DEFAULT_CONTEXT);
  const kvCacheTokens = config.kvCacheTokens ?? Math.max(maxContext, sideBySide);
  if (kvCacheTokens < maxContext) {
    throw new RuvLLMError(
      'invalid_option',
      `option "kvCacheTokens" is ${kvCacheTokens}: one sequence of maxContext ${maxContext} would not fit`,
      { data: { option: 'kvCacheTokens', kvCacheTokens, maxContext } },
    );
  }
  return {
    path: file.path,
    kernels: config.kernels,
    numThreads: config.numThreads,
    kvPrecision: config.kvPrecision,
    maxContext,
    isContextGiven: config.maxContext !== null,
    maxBatchTokens: config.maxBatchTokens,
    maxSequences: Math.min(config.maxSequences, config.maxBatchTokens),
    kvCacheTokens,
    memoryBudgetBytes: null,
    kvPacking: 'off',
    prefixCache: true,
    spill: null,
    maxWaiting: 1024,
    maxRunningPerTenant: null,
    maxRequestsPerTenant: null,
    memoryLimitBytes: config.memoryLimitBytes,
    repackCache: config.repackCache,
  };
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
