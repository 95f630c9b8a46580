import { RuvLLMError } from '../../core/errors.ts';

export function damaged(message: string): RuvLLMError {
  return new RuvLLMError('io', `the memory is damaged: ${message}`, { data: { isDamaged: true } });
}

const typeOf = (value: unknown): string => (value === null ? 'null' : typeof value);

export function numberOf(value: unknown): number {
  if (typeof value !== 'number') throw damaged(`a number is ${typeOf(value)}`);
  return value;
}

export const numberOrNull = (value: unknown): number | null => (value === null ? null : numberOf(value));

export function textOf(value: unknown): string {
  if (typeof value !== 'string') throw damaged(`a text is ${typeOf(value)}`);
  return value;
}

export function bytesOf(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw damaged(`bytes are ${typeOf(value)}`);
  return value;
}

/** Refuses a database written by a newer release. */
export function checkVersion(version: number, knownVersion: number): number {
  if (version <= knownVersion) return version;
  throw new RuvLLMError('unsupported', `the memory has version ${version}, this release reads up to ${knownVersion}`, {
    data: { version, knownVersion },
  });
}
