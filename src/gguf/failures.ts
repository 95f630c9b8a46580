import { type ErrorData, RuvLLMError } from '../core/errors.ts';

/** Quotes and shortens names from the file, so that a hostile name can neither forge nor flood a message. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}

/** Malformed bytes. */
export function invalidFile(message: string, data: ErrorData = {}): never {
  throw new RuvLLMError('invalid_model_file', message, { data });
}

/** Valid input that is not implemented. */
export function unsupportedFile(message: string, data: ErrorData = {}): never {
  throw new RuvLLMError('unsupported', message, { data });
}
