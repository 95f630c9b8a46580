import { RuvLLMError } from '../core/errors.ts';
import type { OptionReader } from '../core/options.ts';

const MAX_NAME_BYTES = 256;

/** The name of a tenant or a session. Half a surrogate pair is refused: in UTF-8 all of them would be the same name. */
export const nameOption: OptionReader<string> = (value, name) => {
  const fail = (got: string): never => {
    const expected = `a string of 1 to ${MAX_NAME_BYTES} bytes`;
    throw new RuvLLMError('invalid_option', `option "${name}" must be ${expected}, got ${got}`, {
      data: { option: name },
    });
  };
  if (typeof value !== 'string') return fail(typeof value);
  // Every character has one byte at least, so a long string need not be encoded to be refused.
  const sizeBytes = value.length > MAX_NAME_BYTES ? value.length : new TextEncoder().encode(value).length;
  if (sizeBytes < 1 || sizeBytes > MAX_NAME_BYTES) return fail(`${sizeBytes} bytes`);
  const index = value.search(/\p{Surrogate}/u);
  if (index >= 0) return fail(`half a surrogate pair at index ${index}`);
  return value;
};
