import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { RuvLLMError } from '../core/errors.ts';
import { nearest } from './nearest.ts';
import { openHub } from './open-hub.ts';

/** What is compared at most: a cache, or a folder, may be anything. */
const MAX_CANDIDATES = 2000;

/** The models here whose names are like the one that was not found; none where it was no model, or nothing is close. */
export async function suggestModels(error: unknown): Promise<readonly string[]> {
  if (!(error instanceof RuvLLMError) || error.code !== 'not_found') return [];
  const reference = /^model (\S+) is not in the cache/.exec(error.message)?.[1];
  const path = /^model file (.+) does not exist$/.exec(error.message)?.[1];
  try {
    if (reference !== undefined) return nearest(reference, await cachedReferences());
    if (path === undefined) return [];
    const beside = readdirSync(dirname(path)).filter((name) => /\.gguf$/i.test(name));
    const close = nearest(basename(path), beside.slice(0, MAX_CANDIDATES));
    if (close.length > 0) return close.map((name) => join(dirname(path), name));
    return nearest(path, await cachedReferences());
  } catch {
    return []; // what is here cannot be listed: the error itself is what matters
  }
}

async function cachedReferences(): Promise<readonly string[]> {
  return (await openHub().listModels()).slice(0, MAX_CANDIDATES).map(({ reference }) => reference);
}
