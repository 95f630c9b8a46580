import { displayNameOf } from '../core/display-name.ts';
import { RuvLLMError } from '../core/errors.ts';
import { openGguf } from '../gguf/reader.ts';
import type { GgufFile } from '../gguf/types.ts';
import { quantOf } from './gguf-choice.ts';
import type { HubPlatform } from './platform.ts';

/** Facts about a model without loading it. */
export interface GgufSummary {
  readonly architecture: string;
  readonly name: string | null;
  readonly numParameters: number;
  readonly numTensors: number;
  readonly numLayers: number | null;
  readonly embeddingSize: number | null;
  readonly contextLength: number | null;
  readonly vocabularySize: number | null;
  /** The tensor type with the most bytes. */
  readonly mainTensorType: string | null;
  readonly hasChatTemplate: boolean;
  /** A short name for people: `TinyLlama 1.1B Chat IQ2_XXS`. */
  readonly displayName: string;
}

/** The summary with the parts that clients of a server may ask for. */
export interface GgufDetails extends GgufSummary {
  /** The quantization in the file name, else the main tensor type. */
  readonly quantization: string | null;
  readonly template: string | null;
  readonly license: string | null;
  /** Numbers, flags and short texts. */
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

const MAX_METADATA_TEXT = 1000;

/** An optional number; null if a hostile file gives it another type. */
function count(file: GgufFile, key: string): number | null {
  const value = file.metadata.get(key);
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function word(file: GgufFile, key: string): string | null {
  const value = file.metadata.get(key);
  return typeof value === 'string' && value !== '' ? value : null;
}

function mainTensorType(file: GgufFile): string | null {
  const bytes = new Map<string, number>();
  for (const { type, sizeBytes } of file.tensors.values()) bytes.set(type, (bytes.get(type) ?? 0) + sizeBytes);
  return [...bytes].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0]?.[0] ?? null;
}

/** Reads only a model's header. */
export function readGgufSummary(platform: HubPlatform, path: string): GgufSummary {
  // Tensors of unknown types are left out: a file that cannot be loaded can still be shown.
  return withGguf(
    platform,
    path,
    (file) => summarize(file, path),
    () => {},
  );
}

/** The summary and the metadata; null if the file is not a readable model. */
export function tryGgufDetails(platform: HubPlatform, path: string): GgufDetails | null {
  return tryRead(() =>
    withGguf(platform, path, (file) => {
      const summary = summarize(file, path);
      const metadata: Record<string, string | number | boolean> = {};
      for (const { key } of file.entries) {
        const value = file.metadata.get(key);
        const isShort = typeof value === 'string' && value.length <= MAX_METADATA_TEXT;
        if (isShort || typeof value === 'number' || typeof value === 'boolean') metadata[key] = value;
      }
      return {
        ...summary,
        quantization: quantOf(path.split(/[\\/]/).at(-1)!) ?? summary.mainTensorType,
        template: word(file, 'tokenizer.chat_template'),
        license: word(file, 'general.license'),
        metadata,
      };
    }),
  );
}

function withGguf<T>(
  platform: HubPlatform,
  path: string,
  read: (file: GgufFile) => T,
  onUnknownType?: (tensor: string, typeId: number) => void,
): T {
  const source = platform.files.openSource(path);
  try {
    return read(openGguf(source, undefined, onUnknownType));
  } finally {
    source.close();
  }
}

function summarize(file: GgufFile, path: string): GgufSummary {
  const architecture = word(file, 'general.architecture') ?? 'unknown';
  const tokens = file.metadata.get('tokenizer.ggml.tokens');
  let numParameters = 0;
  for (const { numElements } of file.tensors.values()) numParameters += numElements;
  const name = word(file, 'general.name');
  const type = mainTensorType(file);
  const hasChatTemplate = word(file, 'tokenizer.chat_template') !== null;
  return {
    architecture,
    name,
    numParameters,
    numTensors: file.tensors.size,
    numLayers: count(file, `${architecture}.block_count`),
    embeddingSize: count(file, `${architecture}.embedding_length`),
    contextLength: count(file, `${architecture}.context_length`),
    vocabularySize: Array.isArray(tokens) ? tokens.length : null,
    mainTensorType: type,
    hasChatTemplate,
    displayName: displayNameOf({ name, file: path, numParameters, quantization: type, hasChatTemplate }),
  };
}

/** The summary, or null if the file is not a readable model. */
export function tryGgufSummary(platform: HubPlatform, path: string): GgufSummary | null {
  return tryRead(() => readGgufSummary(platform, path));
}

function tryRead<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof RuvLLMError) return null;
    throw error;
  }
}
