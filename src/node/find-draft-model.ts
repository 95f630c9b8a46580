import { statSync } from 'node:fs';
import { RuvLLMError } from '../core/errors.ts';
import { vocabularyDifference } from '../gguf/same-vocabulary.ts';
import type { Metadata } from '../gguf/types.ts';
import type { Hub } from '../hub/hub.ts';
import { modelPartPaths, openModelFile } from '../platform/node/files/open-model-file.ts';

/** A draft model with more than this share of the weights costs more than it saves. */
const MAX_SHARE = 1 / 4;

/** The path of a draft model: of a reference, or with `auto` of the smallest model in the cache that shares the vocabulary. */
export async function findDraftModel(
  path: string,
  wish: string | null,
  hub: Pick<Hub, 'resolveModelPath' | 'listModels'>,
  { signal }: { signal: AbortSignal | null },
): Promise<string | null> {
  if (wish === null) return null;
  if (wish !== 'auto') return hub.resolveModelPath(wish, { download: true, signal });
  const maxBytes = sizeOf(path) * MAX_SHARE;
  const candidates = (await hub.listModels()).filter(({ sizeBytes }) => sizeBytes <= maxBytes);
  if (candidates.length === 0) return null;
  const own = readMetadata(path)!;
  for (const { path: candidate } of candidates.toSorted((a, b) => a.sizeBytes - b.sizeBytes)) {
    const other = readMetadata(candidate);
    if (other !== null && vocabularyDifference(own, other) === null) return candidate;
  }
  return null;
}

const sizeOf = (path: string): number =>
  modelPartPaths(path).reduce((sum, part) => sum + statSync(part, { throwIfNoEntry: false })!.size, 0);

/** Null: not a model that can be read. */
function readMetadata(path: string): Metadata | null {
  try {
    const { metadata, source } = openModelFile(path);
    source.close();
    return metadata;
  } catch (error) {
    if (error instanceof RuvLLMError) return null;
    throw error;
  }
}
