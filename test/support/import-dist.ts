import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Tools run this file from there. */
const modules = join(import.meta.dirname.replace('/.cache/tools/', '/'), '../../.cache/tested');

export const hasDist = existsSync(join(modules, 'index.js'));

/** A module of the library, bundled with all others that tests import: only bundles can start threads. */
export async function importDist<T>(path: string): Promise<T> {
  return (await import(pathToFileURL(join(modules, path.replaceAll('/', '~'))).href)) as T;
}
