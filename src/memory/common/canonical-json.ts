import { RuvLLMError } from '../../core/errors.ts';
import type { JsonValue } from '../types.ts';

/** JSON with sorted keys and no spaces, so that equal values have equal hashes. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new RuvLLMError('invalid_option', `${value} has no JSON form`);
  }
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  let text = '';
  if (Array.isArray(value)) {
    for (const item of value as readonly JsonValue[]) text += `${text === '' ? '' : ','}${canonicalJson(item)}`;
    return `[${text}]`;
  }
  const object = value as Readonly<Record<string, JsonValue>>;
  for (const key of Object.keys(object).sort()) {
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(object[key]!)}`;
  }
  return `{${text}}`;
}
