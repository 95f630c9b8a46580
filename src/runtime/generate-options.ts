import { RuvLLMError } from '../core/errors.ts';
import { booleanOption, instanceOption, optional, resolveOptions } from '../core/options.ts';
import {
  type GenerateParams,
  resolveGenerateParams,
  type ResolvedGenerateParams,
} from '../sampling/generate-params.ts';
import { isAbortSignal } from './model-config.ts';

/** Sampling parameters, and how the call itself is done. */
export interface GenerateOptions extends GenerateParams {
  /** Aborts the generation: the call fails with `aborted`. */
  signal?: AbortSignal;
  /** Spellings of control tokens in a text prompt become those tokens. Only for text you trust. Default false. */
  parseSpecial?: boolean;
}

export interface ResolvedGenerateOptions {
  readonly params: ResolvedGenerateParams;
  /** False: `maxTokens` is the default, and shrinks to what is left of the context. */
  readonly isMaxTokensGiven: boolean;
  readonly signal: AbortSignal | null;
  readonly parseSpecial: boolean;
}

/** Checks the options of one call. */
export function resolveGenerateOptions(options: GenerateOptions = {}): ResolvedGenerateOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RuvLLMError('invalid_option', `generate: options must be an object, got ${describe(options)}`);
  }
  const { signal, parseSpecial, ...params } = options;
  const call = resolveOptions<Pick<ResolvedGenerateOptions, 'signal' | 'parseSpecial'>>(
    'generate',
    { signal, parseSpecial },
    { signal: optional(instanceOption('an AbortSignal', isAbortSignal)), parseSpecial: booleanOption(false) },
  );
  return { params: resolveGenerateParams(params), isMaxTokensGiven: params.maxTokens !== undefined, ...call };
}

const describe = (value: unknown): string => (Array.isArray(value) ? 'a list' : value === null ? 'null' : typeof value);

/** The tokens to generate: what was asked for, or what fits of the default; `context_overflow` with both numbers. */
export function fitMaxTokens(
  { params, isMaxTokensGiven }: Pick<ResolvedGenerateOptions, 'params' | 'isMaxTokensGiven'>,
  promptTokens: number,
  maxContext: number,
): number {
  const room = maxContext - promptTokens;
  if (room < 1) {
    throw new RuvLLMError(
      'context_overflow',
      `prompt of ${promptTokens} tokens leaves no room in the context of ${maxContext}`,
      { data: { promptTokens, maxContext } },
    );
  }
  if (!isMaxTokensGiven) return Math.min(params.maxTokens, room);
  if (params.maxTokens > room) {
    throw new RuvLLMError(
      'context_overflow',
      `prompt of ${promptTokens} tokens and ${params.maxTokens} to generate exceed the context of ${maxContext}`,
      { data: { promptTokens, maxTokens: params.maxTokens, maxContext } },
    );
  }
  return params.maxTokens;
}

/** A bias on a token that does not exist would do nothing, silently. */
export function checkLogitBias({ logitBias }: ResolvedGenerateParams, vocabSize: number): void {
  for (const id of logitBias.keys()) {
    if (id < vocabSize) continue;
    throw new RuvLLMError('invalid_token', `logitBias names token ${id}, the vocabulary has ${vocabSize}`, {
      data: { tokenId: id, vocabSize },
    });
  }
}
