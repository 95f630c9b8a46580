import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { RuvLLMError } from '../core/errors.ts';
import type { ByteSource } from '../core/byte-source.ts';
import {
  convertSafetensors,
  convertSafetensorsProjector,
  type GgufToWrite,
  type HfConvertOptions,
  openSafetensors,
  writeGguf,
} from '../gguf/index.ts';
import { toFileError } from '../platform/node/files/file-errors.ts';
import { writeWhole } from '../platform/node/files/file-sink.ts';
import { openFileSource } from '../platform/node/files/file-source.ts';
import { readJsonFile, readSmallFile } from '../platform/node/files/json-file.ts';

const MAX_CONFIG_BYTES = 4 * 2 ** 20;
/** The largest published vocabularies have about 35 MB. */
const MAX_TOKENIZER_BYTES = 128 * 2 ** 20;
const INDEX = 'model.safetensors.index.json';

export interface ConvertFolderOptions {
  readonly folder: string;
  readonly path: string;
  readonly type: HfConvertOptions['type'];
  /** Default: the name of the folder. */
  readonly name?: string;
  readonly preTokenizer?: string;
  /** `projector`: the image encoder of a model that sees, as an mmproj file. Default `text`. */
  readonly part?: 'text' | 'projector';
  readonly onProgress?: (doneBytes: number) => void;
}

export interface ConvertedFile {
  readonly sizeBytes: number;
  readonly architecture: string;
  readonly numTensors: number;
  readonly hasTokenizer: boolean;
}

/** Converts a checkpoint folder of Hugging Face to a GGUF file, tensor by tensor; the file appears only when it is complete. */
export function convertFolder(options: ConvertFolderOptions): ConvertedFile {
  const { path, onProgress } = options;
  return withConversion(options, (file) => {
    const sizeBytes = writeWhole(path, (sink) => {
      const write = (bytes: Uint8Array): void => {
        sink.write(bytes);
        onProgress?.(sink.sizeBytes);
      };
      writeGguf(file, { write });
    });
    return { sizeBytes, ...describe(file) };
  });
}

/** A checkpoint folder as a GGUF file, whose tensors are read and converted on demand. */
export interface Conversion {
  readonly file: GgufToWrite;
  close(): void;
}

/** Calls `use` with the converted file. */
export function withConversion<T>(
  options: Omit<ConvertFolderOptions, 'path' | 'onProgress'>,
  use: (file: GgufToWrite) => T,
): T {
  const { file, close } = openConversion(options);
  try {
    return use(file);
  } finally {
    close();
  }
}

/** Opens a checkpoint folder; its files stay open until `close()`. */
export function openConversion({
  folder,
  type,
  name = basename(folder),
  preTokenizer,
  part = 'text',
}: Omit<ConvertFolderOptions, 'path' | 'onProgress'>): Conversion {
  const sources: ByteSource[] = [];
  const close = (): void => {
    for (const source of sources) source.close();
  };
  try {
    for (const shard of findShards(folder)) sources.push(openFileSource(join(folder, shard)));
    const tokenizerModel = join(folder, 'tokenizer.model');
    const checkpoint = {
      config: readJsonFile(join(folder, 'config.json'), MAX_CONFIG_BYTES),
      files: sources.map((source) => openSafetensors(source)),
    };
    if (part === 'projector') {
      const preprocessorConfig = readOptional(folder, 'preprocessor_config.json');
      return { file: convertSafetensorsProjector({ ...checkpoint, preprocessorConfig }, { type, name }), close };
    }
    const file = convertSafetensors(
      {
        ...checkpoint,
        tokenizerJson: readOptional(folder, 'tokenizer.json'),
        tokenizerConfig: readTokenizerConfig(folder),
        ...(existsSync(tokenizerModel) ? { tokenizerModel: readSmallFile(tokenizerModel, MAX_TOKENIZER_BYTES) } : {}),
      },
      { type, name, ...(preTokenizer === undefined ? {} : { preTokenizer }) },
    );
    return { file, close };
  } catch (error) {
    close();
    throw error;
  }
}

function describe({ metadata, tensors }: GgufToWrite): Omit<ConvertedFile, 'sizeBytes'> {
  const architecture = metadata.find(({ key }) => key === 'general.architecture')!.value as string;
  const hasTokenizer = metadata.some(({ key }) => key === 'tokenizer.ggml.tokens');
  return { architecture, numTensors: tensors.length, hasTokenizer };
}

/** The shards that the index lists, or all safetensors files of a folder without one. */
function findShards(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    throw toFileError(error, 'opening', folder);
  }
  const shards = names.includes(INDEX)
    ? listedShards(folder, names)
    : names.filter((name) => name.endsWith('.safetensors')).toSorted();
  if (shards.length === 0) throw new RuvLLMError('not_found', `${folder} has no .safetensors file`);
  return shards;
}

function listedShards(folder: string, names: readonly string[]): string[] {
  const index = readJsonFile(join(folder, INDEX), MAX_TOKENIZER_BYTES) as {
    weight_map?: Record<string, unknown>;
  } | null;
  const shards = [...new Set(Object.values(index?.weight_map ?? {}).map(String))];
  const missing = shards.find((shard) => !names.includes(shard));
  if (missing === undefined) return shards.toSorted();
  throw new RuvLLMError(
    'not_found',
    `${folder}: ${INDEX} lists ${JSON.stringify(missing.slice(0, 80))}, which does not exist`,
  );
}

const readOptional = (folder: string, name: string): unknown =>
  existsSync(join(folder, name)) ? readJsonFile(join(folder, name), MAX_TOKENIZER_BYTES) : undefined;

/** Newer checkpoints have the chat template in its own file. */
function readTokenizerConfig(folder: string): unknown {
  const config = readOptional(folder, 'tokenizer_config.json');
  const template = join(folder, 'chat_template.jinja');
  if (!existsSync(template)) return config;
  const chat_template = new TextDecoder().decode(readSmallFile(template, MAX_CONFIG_BYTES));
  return { ...(config as object | undefined), chat_template };
}
