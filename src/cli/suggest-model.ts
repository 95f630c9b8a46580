import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { RuvLLMError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { openHub } from './open-hub.ts';

/** Bounds the work in a huge cache or folder. */
const MAX_CANDIDATES = 2000;

/** Cached models, or files in the same folder, with names similar to the missing model of `error`. */
export async function suggestModels(error: unknown): Promise<readonly string[]> {
  if (!(error instanceof RuvLLMError) || error.code !== 'not_found') return [];
  const reference = /^model (\S+) is not in the cache/.exec(error.message)?.[1];
  const path = /^model file (.+) does not exist$/.exec(error.message)?.[1];
  try {
    if (reference !== undefined) return nearest(reference, await cachedReferences());
    if (path === undefined) return [];
    const files = readdirSync(dirname(path)).filter((name) => /\.gguf$/i.test(name));
    const similar = nearest(basename(path), files.slice(0, MAX_CANDIDATES));
    if (similar.length > 0) return similar.map((name) => join(dirname(path), name));
    return nearest(path, await cachedReferences());
  } catch {
    return []; // a failed listing must not hide the original error
  }
}

async function cachedReferences(): Promise<readonly string[]> {
  return (await openHub().listModels()).slice(0, MAX_CANDIDATES).map(({ reference }) => reference);
}
