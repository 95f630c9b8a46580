import { RuvLLMError } from '../core/errors.ts';
import type { Metadata } from '../gguf/index.ts';

/** A whole number from 1 to `max`; accepts a list with one entry per layer if all are equal. */
export function readCount(metadata: Metadata, key: string, max: number, defaultValue?: number): number {
  const isList = ArrayBuffer.isView(metadata.get(key));
  const values = isList ? Array.from(metadata.numbers(key)) : [metadata.number(key, defaultValue)];
  const value = values[0] ?? 0;
  if (values.some((other) => other !== value)) {
    throw new RuvLLMError('unsupported', `metadata key "${key}" differs between layers (${values.join(', ')})`, {
      data: { key },
    });
  }
  if (!Number.isSafeInteger(value) || value < 1 || value > max) {
    throw new RuvLLMError('invalid_model_file', `metadata key "${key}" is ${value}, must be from 1 to ${max}`, {
      data: { key, value, max },
    });
  }
  return value;
}
