import { RuvLLMError } from '../core/errors.ts';

/** What was typed is wrong: exit code 2. */
export function usageError(message: string, option: string | null = null): RuvLLMError {
  return new RuvLLMError('invalid_option', message, { data: option === null ? {} : { option } });
}
