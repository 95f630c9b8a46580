import { RuvLLMError } from '../core/errors.ts';
import type { OptionReader } from '../core/options.ts';

const MAX_NAME_BYTES = 256;

/** The name of a tenant or a session. Rejects lone surrogates, because UTF-8 maps all of them to one name. */
export const nameOption: OptionReader<string> = (value, name) => {
  const fail = (got: string): never => {
    const expected = `a string of 1 to ${MAX_NAME_BYTES} bytes`;
    throw new RuvLLMError('invalid_option', `option "${name}" must be ${expected}, got ${got}`, {
      data: { option: name },
    });
  };
  if (typeof value !== 'string') return fail(typeof value);
  // Every character has at least one byte, so a long string is rejected without encoding it.
  const sizeBytes = value.length > MAX_NAME_BYTES ? value.length : new TextEncoder().encode(value).length;
  if (sizeBytes < 1 || sizeBytes > MAX_NAME_BYTES) return fail(`${sizeBytes} bytes`);
  const index = value.search(/\p{Surrogate}/u);
  if (index >= 0) return fail(`a lone surrogate at index ${index}`);
  return value;
};
