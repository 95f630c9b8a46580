import {
  booleanOption,
  instanceOption,
  integerOption,
  numberOption,
  optional,
  type OptionReader,
  resolveOptions,
} from '../../core/options.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Reflection, ResolvedReflection } from './types.ts';

export const MAX_RETRIES = 3;

const isFunction = (value: unknown): value is NonNullable<Reflection['check']> => typeof value === 'function';
const isPatterns = (value: unknown): value is NonNullable<Reflection['patterns']> =>
  typeof value === 'object' && value !== null && 'frequent' in value && 'note' in value;

/** Reads the option `reflection`: a boolean or its settings; null: off. */
export const reflectionOption: OptionReader<ResolvedReflection | null> = (value, name) => {
  if (value === undefined || value === null || value === false) return null;
  if (value !== true && (typeof value !== 'object' || Array.isArray(value))) {
    throw new RuvLLMError('invalid_option', `option "${name}" must be a boolean or an object`, {
      data: { option: name },
    });
  }
  return resolveOptions<ResolvedReflection>(
    name,
    value === true ? {} : value,
    {
      maxRetries: integerOption(MAX_RETRIES, 1, MAX_RETRIES),
      minGain: numberOption(0.05, 0, 1),
      minConfidence: numberOption(0, 0, 1),
      showsErrors: optional(booleanOption(true)),
      check: optional(instanceOption('a function', isFunction)),
      patterns: optional(instanceOption('a store of error patterns', isPatterns)),
    },
    { path: `${name}.` },
  );
};
