import { invalidFile } from '../failures.ts';
import { showValue } from '../../core/show-value.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Upper bound of any size, so that products of two stay below 2^53. */
const MAX_SIZE = 2 ** 26;
export function isJsonObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function size(config: Json, key: string, defaultValue?: number): number {
  const value = config[key] ?? defaultValue;
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > MAX_SIZE) {
    invalidFile(`config.json: ${key} must be an integer from 1 to ${MAX_SIZE}, got ${show(value)}`, { key });
  }
  return value as number;
}

/** An integer that may be 0. */
export function wholeNumber(config: Json, key: string, defaultValue: number): number {
  const value = config[key] ?? defaultValue;
  return value === 0 ? 0 : size(config, key, defaultValue);
}

export function positive(config: Json, key: string, defaultValue?: number): number {
  const value = config[key] ?? defaultValue;
  if (typeof value !== 'number' || !(value > 0 && value < Infinity)) {
    invalidFile(`config.json: ${key} must be a positive number, got ${show(value)}`, { key });
  }
  return value;
}

/** Some models end on any of several tokens; training used the first. */
export function tokenId(config: Json, key: string): number | null {
  const value = config[key];
  const id: unknown = Array.isArray(value) ? value[0] : value;
  return Number.isSafeInteger(id) && (id as number) >= 0 ? (id as number) : null;
}

/** A list of `length` numbers; `null` values are not numbers. */
export function numberList(config: Json, key: string, length: number): readonly number[] {
  const value = config[key];
  if (Array.isArray(value) && value.length === length && value.every((item) => typeof item === 'number')) return value;
  const got = Array.isArray(value) ? `a list of ${value.length}` : show(value);
  return invalidFile(`config.json: ${key} must be a list of ${length} numbers, got ${got}`, { key, length });
}

/** The kinds of all layers in `layer_types`, which must have one entry for each. */
export function layerTypes(config: Json, numLayers: number): readonly string[] {
  const types = config['layer_types'];
  if (Array.isArray(types) && types.length === numLayers && types.every((type) => typeof type === 'string'))
    return types;
  const got = Array.isArray(types) ? `a list of ${types.length}` : show(types);
  return invalidFile(`config.json: layer_types must name the kinds of ${numLayers} layers, got ${got}`, { numLayers });
}

export const show = (value: unknown): string => (value === undefined ? 'nothing' : showValue(value));
