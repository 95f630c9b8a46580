import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Tools run this file from there. */
const modules = join(import.meta.dirname.replace('/.cache/tools/', '/'), '../../.cache/tools/src');

/** A transpiled module of the library: only these can start threads. Bundles are tested through their processes and exports. */
export async function importDist<T>(path: string): Promise<T> {
  return (await import(pathToFileURL(join(modules, path)).href)) as T;
}
