import { type ErrorData, RuvLLMError } from '../core/errors.ts';

/** Bytes that are not a valid image. */
export function invalidImage(message: string, data: ErrorData = {}): RuvLLMError {
  return new RuvLLMError('invalid_option', `invalid image: ${message}`, { data: { option: 'image', ...data } });
}

/** A valid image of a kind that this version does not decode. */
export function unsupportedImage(message: string, data: ErrorData = {}): RuvLLMError {
  return new RuvLLMError('unsupported', `unsupported image: ${message}`, { data: { option: 'image', ...data } });
}
