import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('./corpus', import.meta.url.replace('/.cache/tools/', '/')));

/** The files of a target's corpus, by name. */
export function readCorpus(target: string): { readonly name: string; readonly bytes: Uint8Array }[] {
  const path = join(folder, target);
  if (!existsSync(path)) return [];
  return readdirSync(path)
    .toSorted()
    .map((name) => ({ name, bytes: Uint8Array.from(readFileSync(join(path, name))) }));
}

/** Saves inputs under names of their contents. */
export function saveInputs(into: string, inputs: readonly Uint8Array[]): string[] {
  mkdirSync(into, { recursive: true });
  return inputs.map((bytes) => {
    const path = join(into, createHash('sha256').update(bytes).digest('hex').slice(0, 12));
    writeFileSync(path, bytes);
    return path;
  });
}

export const corpusFolder = (target: string): string => join(folder, target);

/** Removes the files of a corpus, without those of bugs that were found (`bug-…`). */
export function clearCorpus(target: string): void {
  for (const { name } of readCorpus(target)) if (!name.startsWith('bug-')) rmSync(join(folder, target, name));
}
