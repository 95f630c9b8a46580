import { type ErrorData, RuvLLMError } from '../core/errors.ts';

/** Names come from the file: quoted and cut, so that a hostile one can neither forge nor flood a message. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}

/** Bytes that break their own format. */
export function invalidFile(message: string, data: ErrorData = {}): never {
  throw new RuvLLMError('invalid_model_file', message, { data });
}

/** Valid input that we do not implement. */
export function unsupportedFile(message: string, data: ErrorData = {}): never {
  throw new RuvLLMError('unsupported', message, { data });
}
