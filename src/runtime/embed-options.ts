import { RuvLLMError } from '../core/errors.ts';
import {
  booleanOption,
  choiceOption,
  instanceOption,
  integerOption,
  numberOption,
  optional,
  type OptionReaders,
  resolveOptions,
} from '../core/options.ts';
import { type Pooling, POOLINGS } from '../engine/pooling.ts';
import { MAX_PRIORITY, MIN_PRIORITY } from '../engine/types.ts';
import { DEFAULT_TENANT, type GenerateOptions, MAX_TIMEOUT_MS } from './generate-options.ts';
import { isAbortSignal } from './model-config.ts';
import { nameOption } from './name-option.ts';

/** How texts are embedded. */
export interface EmbedOptions extends Pick<GenerateOptions, 'signal' | 'tenant' | 'priority' | 'timeoutMs'> {
  /** How token vectors are combined. Default: as in the model file, otherwise their mean. */
  pooling?: Pooling;
  /** Whether embeddings are normalized to length 1, so that the dot product is the cosine. Default true. */
  normalize?: boolean;
  /** Number of leading values to keep, for models trained for that. Default: all. */
  dimensions?: number;
}

export interface ResolvedEmbedOptions {
  readonly signal: AbortSignal | null;
  readonly tenant: string;
  readonly priority: number;
  readonly timeoutMs: number | null;
  readonly pooling: Pooling;
  readonly normalize: boolean;
  readonly dimensions: number;
}

/** Readers of the options that all calls without an answer have. */
export const SCHEDULING_READERS: OptionReaders<
  Pick<ResolvedEmbedOptions, 'signal' | 'tenant' | 'priority' | 'timeoutMs'>
> = {
  signal: optional(instanceOption('an AbortSignal', isAbortSignal)),
  tenant: (value, name) => nameOption(value ?? DEFAULT_TENANT, name),
  priority: integerOption(0, MIN_PRIORITY, MAX_PRIORITY),
  timeoutMs: optional(numberOption(0, 1, MAX_TIMEOUT_MS)),
};

/** Checks the options of one call. */
export function resolveEmbedOptions(
  options: EmbedOptions | undefined,
  { embeddingDim, pooling }: { embeddingDim: number; pooling: Pooling },
): ResolvedEmbedOptions {
  const resolved = resolveOptions<ResolvedEmbedOptions>('embed', options, {
    ...SCHEDULING_READERS,
    pooling: choiceOption(pooling, POOLINGS),
    normalize: booleanOption(true),
    dimensions: integerOption(embeddingDim, 1, Number.MAX_SAFE_INTEGER),
  });
  if (resolved.dimensions > embeddingDim) {
    throw new RuvLLMError(
      'invalid_option',
      `option "dimensions" is ${resolved.dimensions}; embeddings of this model have ${embeddingDim} values`,
      { data: { option: 'dimensions', dimensions: resolved.dimensions, embeddingDim } },
    );
  }
  return resolved;
}
