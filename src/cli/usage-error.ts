import { RuvLLMError } from '../core/errors.ts';

/** Invalid command line: exit code 2. */
export function usageError(message: string, option: string | null = null): RuvLLMError {
  return new RuvLLMError('invalid_option', message, { data: option === null ? {} : { option } });
}

/** `flag` was used without `requirement`. */
export function requiresError(flag: string, requirement: string): RuvLLMError {
  return usageError(`${flag} requires ${requirement}`, flag);
}

export function conflictError(flag: string, other: string): RuvLLMError {
  return usageError(`${flag} cannot be combined with ${other}`, flag);
}

/** `value`, if it is from `min` to `max`. */
export function requireRange(flag: string, value: number, min: number, max: number): number {
  if (value >= min && value <= max) return value;
  throw usageError(`${flag} must be from ${min} to ${max}, got ${value}`, flag);
}
