import type { ByteSource } from '../../../core/byte-source.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { openFileSource } from './file-source.ts';

/** All bytes of a regular file. */
export function readRegularFile(path: string): Uint8Array {
  const source = openFileSource(path);
  try {
    return readAll(source);
  } finally {
    source.close();
  }
}

function readAll(source: ByteSource): Uint8Array {
  const bytes = new Uint8Array(source.sizeBytes);
  source.readInto(bytes, 0);
  return bytes;
}

/** Reads a file of at most `maxBytes` whole. */
export function readSmallFile(path: string, maxBytes: number): Uint8Array {
  const source = openFileSource(path);
  try {
    if (source.sizeBytes > maxBytes) {
      throw new RuvLLMError('invalid_model_file', `${path} has ${source.sizeBytes} bytes, the limit is ${maxBytes}`);
    }
    return readAll(source);
  } finally {
    source.close();
  }
}

/** Parses a JSON file of at most `maxBytes`; invalid text is `invalid_model_file`. */
export function readJsonFile(path: string, maxBytes: number): unknown {
  const bytes = readSmallFile(path, maxBytes);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new RuvLLMError('invalid_model_file', `${path} is not valid JSON (${bytes.length} bytes)`, {
      cause: error,
    });
  }
}
