import { basename, dirname, join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { openGguf } from '../../../gguf/reader.ts';
import { openSplitGguf } from '../../../gguf/split.ts';
import type { GgufFile } from '../../../gguf/types.ts';
import { openFileSource } from './file-source.ts';

/** `name-00001-of-00003.gguf`: how the parts of a large model are named. */
const PART_NAME = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
/** More parts than any published model has; each is an open file. */
const MAX_PARTS = 256;

/** The paths of all parts of the model that `path` is a part of; just `path` for a model in one file. */
export function modelPartPaths(path: string): string[] {
  const match = PART_NAME.exec(basename(path));
  if (match === null) return [path];
  const [, stem, , total] = match as unknown as [string, string, string, string];
  const numParts = Number(total);
  if (numParts < 1 || numParts > MAX_PARTS) {
    throw new RuvLLMError('invalid_model_file', `${path}: a model of ${numParts} parts, expected 1 to ${MAX_PARTS}`);
  }
  return Array.from({ length: numParts }, (_, index) => {
    const number = String(index + 1).padStart(5, '0');
    return join(dirname(path), `${stem}-${number}-of-${total}.gguf`);
  });
}

/**
 * Opens a model file, or all parts of a split one; closing its `source` closes them all. `onUnknownType` as in
 * `openGguf`, only for a model in one file.
 */
export function openModelFile(path: string, onUnknownType?: (tensor: string, typeId: number) => void): GgufFile {
  const sources: ReturnType<typeof openFileSource>[] = [];
  try {
    for (const part of modelPartPaths(path)) sources.push(openFileSource(part));
    return sources.length === 1 ? openGguf(sources[0]!, undefined, onUnknownType) : openSplitGguf(sources);
  } catch (error) {
    for (const source of sources) source.close();
    throw error;
  }
}
