import { templateError, typeName } from './values.ts';
import type { CallArguments, Value } from './values.ts';
import { showValue } from '../../core/show-value.ts';

/** The argument at `index` or with that name; undefined if missing. */
export function argument(args: CallArguments, index: number, name: string): Value {
  return index < args.positional.length ? args.positional[index] : args.named.get(name);
}

export function textArgument(args: CallArguments, index: number, name: string, fallback?: string): string {
  const value = argument(args, index, name) ?? fallback;
  if (typeof value !== 'string') throw templateError(`argument "${name}" must be a string, got ${typeName(value)}`);
  return value;
}

export function integerArgument(args: CallArguments, index: number, name: string, fallback: number): number {
  const value = argument(args, index, name) ?? fallback;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw templateError(`argument "${name}" must be an integer, got ${typeName(value)} ${showValue(value)}`);
  }
  return value;
}
