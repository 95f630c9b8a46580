import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Adapter, type AdapterBase, readGgufAdapter, readPeftAdapter } from '../adapters/index.ts';
import { RuvLLMError } from '../core/errors.ts';
import { openGguf } from '../gguf/reader.ts';
import { openSafetensors } from '../gguf/index.ts';
import { toFileError } from '../platform/node/files/file-errors.ts';
import { openFileSource } from '../platform/node/files/file-source.ts';

const TENSORS = 'adapter_model.safetensors';
const CONFIG = 'adapter_config.json';
/** Usual files have a few kB; with patterns for every module of a large model, some hundred. */
const MAX_CONFIG_BYTES = 4 * 2 ** 20;

/** Reads an adapter for a model: a GGUF file, a PEFT folder, or its safetensors file. */
export async function readAdapter(path: string, base: AdapterBase): Promise<Adapter> {
  const tensors = isFolder(path) ? join(path, TENSORS) : path;
  const source = openFileSource(tensors);
  try {
    if (!tensors.endsWith('.safetensors')) return await readGgufAdapter(openGguf(source), base);
    const config = readJson(join(dirname(tensors), CONFIG));
    return await readPeftAdapter({ config, tensors: openSafetensors(source) }, base);
  } finally {
    source.close();
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw toFileError(error, 'opening', path);
  }
}

function readJson(path: string): unknown {
  const source = openFileSource(path);
  try {
    if (source.sizeBytes > MAX_CONFIG_BYTES) {
      throw new RuvLLMError(
        'invalid_model_file',
        `${path} has ${source.sizeBytes} bytes, the limit is ${MAX_CONFIG_BYTES}`,
      );
    }
    const bytes = new Uint8Array(source.sizeBytes);
    source.readInto(bytes, 0);
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    throw new RuvLLMError('invalid_model_file', `${path} is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    source.close();
  }
}
