import { RuvLLMError } from '../../core/errors.ts';
import type { GenerationRequest } from './generation-request.ts';

/** Rewrites an error of the library in the caller's terms: a client that sent `max_output_tokens` knows no `maxTokens`. */
export function inFieldNames(error: unknown, request: GenerationRequest): unknown {
  if (!(error instanceof RuvLLMError)) return error;
  const option = error.data['option'] ?? grammarOption(error, request);
  if (typeof option !== 'string') return error;
  const names: Readonly<Record<string, string>> = { ...request.fieldNames };
  if (!Object.hasOwn(names, option) && option === error.data['option']) return error;
  const field = Object.hasOwn(names, option) ? names[option]! : option;
  const { code, data, isRetryable } = error;
  const message = error.message.replace(`option "${option}"`, () => `'${field}'`);
  return new RuvLLMError(code, message, { cause: error, data: { ...data, option: field }, isRetryable });
}

/** Errors about schemas and grammars name a place inside them; with tools and a constraint it could be in either. */
function grammarOption({ code, message }: RuvLLMError, { constraint, tools }: GenerationRequest): string | null {
  if ((code !== 'unsupported' && code !== 'invalid_option') || !message.startsWith('grammar: ')) return null;
  if (constraint !== null) return tools.length === 0 ? 'grammar' : null;
  return tools.length === 0 ? null : 'tools';
}
