import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Adapter, type AdapterBase, readGgufAdapter, readPeftAdapter } from '../adapters/index.ts';
import { openGguf } from '../gguf/reader.ts';
import { openSafetensors } from '../gguf/index.ts';
import { toFileError } from '../platform/node/files/file-errors.ts';
import { openFileSource } from '../platform/node/files/file-source.ts';
import { readJsonFile } from '../platform/node/files/json-file.ts';

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
    const config = readJsonFile(join(dirname(tensors), CONFIG), MAX_CONFIG_BYTES);
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
