import { booleanOption, choiceOption, integerOption, optional, resolveOptions } from '../core/options.ts';
import { type ResolvedEmbedOptions, SCHEDULING_READERS } from './embed-options.ts';
import type { GenerateOptions } from './generate-options.ts';

/** How the score of a document is computed; `RerankOptions` explains them. */
export type RerankMethod = (typeof RERANK_METHODS)[number];
export const RERANK_METHODS = ['cross-encoder', 'embeddings'] as const;

/** How documents are scored. */
export interface RerankOptions extends Pick<GenerateOptions, 'signal' | 'tenant' | 'priority' | 'timeoutMs'> {
  /** Number of results, the best first. Default: all. */
  topN?: number;
  /**
   * `cross-encoder` scores query and document together with the model's classification head; `embeddings` works with every
   * model and compares their embeddings. Default `cross-encoder`.
   */
  method?: RerankMethod;
  /** Whether the end of a document that exceeds the context is left out. Default false: it fails with `context_overflow`. */
  truncate?: boolean;
}

export interface ResolvedRerankOptions extends Pick<
  ResolvedEmbedOptions,
  'signal' | 'tenant' | 'priority' | 'timeoutMs'
> {
  readonly topN: number | null;
  readonly method: RerankMethod;
  readonly truncate: boolean;
}

/** Checks the options of one call. */
export function resolveRerankOptions(options: RerankOptions | undefined): ResolvedRerankOptions {
  return resolveOptions<ResolvedRerankOptions>('rerank', options, {
    ...SCHEDULING_READERS,
    topN: optional(integerOption(1, 1, Number.MAX_SAFE_INTEGER)),
    method: choiceOption('cross-encoder', RERANK_METHODS),
    truncate: booleanOption(false),
  });
}
