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

/** The files of an adapter: a GGUF file, or the tensors of a PEFT folder with their config. */
interface AdapterFiles {
  readonly tensors: string;
  /** Null: a GGUF file has none. */
  readonly config: string | null;
}

/** The files of an adapter that is named by a GGUF file, a PEFT folder, or its safetensors file. */
export function adapterFilesOf(path: string): AdapterFiles {
  const tensors = isFolder(path) ? join(path, TENSORS) : path;
  return { tensors, config: tensors.endsWith('.safetensors') ? join(dirname(tensors), CONFIG) : null };
}

/** Reads an adapter for a model. */
export const readAdapter = (path: string, base: AdapterBase): Promise<Adapter> =>
  openAdapter(
    path,
    (file) => readGgufAdapter(file, base),
    (files) => readPeftAdapter(files, base),
  );

/** Throws unless the files have the format of an adapter, for whatever model. */
export const checkAdapterFiles = (path: string): Promise<unknown> =>
  openAdapter(
    path,
    async () => {},
    async () => {},
  );

async function openAdapter<T>(
  path: string,
  useGguf: (file: ReturnType<typeof openGguf>) => Promise<T>,
  usePeft: (files: Parameters<typeof readPeftAdapter>[0]) => Promise<T>,
): Promise<T> {
  const { tensors, config } = adapterFilesOf(path);
  const source = openFileSource(tensors);
  try {
    if (config === null) return await useGguf(openGguf(source));
    return await usePeft({ config: readJsonFile(config, MAX_CONFIG_BYTES), tensors: openSafetensors(source) });
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
