import { RuvLLMError } from '../core/errors.ts';
import { openGguf } from '../gguf/index.ts';
import type { GgufFile } from '../gguf/types.ts';
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
}

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
  const source = platform.files.openSource(path);
  try {
    const file = openGguf(source);
    const architecture = word(file, 'general.architecture') ?? 'unknown';
    const tokens = file.metadata.get('tokenizer.ggml.tokens');
    let numParameters = 0;
    for (const { numElements } of file.tensors.values()) numParameters += numElements;
    return {
      architecture,
      name: word(file, 'general.name'),
      numParameters,
      numTensors: file.tensors.size,
      numLayers: count(file, `${architecture}.block_count`),
      embeddingSize: count(file, `${architecture}.embedding_length`),
      contextLength: count(file, `${architecture}.context_length`),
      vocabularySize: Array.isArray(tokens) ? tokens.length : null,
      mainTensorType: mainTensorType(file),
      hasChatTemplate: word(file, 'tokenizer.chat_template') !== null,
    };
  } finally {
    source.close();
  }
}

/** The summary, or null if the file is not a readable model. */
export function tryGgufSummary(platform: HubPlatform, path: string): GgufSummary | null {
  try {
    return readGgufSummary(platform, path);
  } catch (error) {
    if (error instanceof RuvLLMError) return null;
    throw error;
  }
}
