import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A module of the built package: only it can start threads. */
export async function importDist<T>(path: string): Promise<T> {
  return (await import(pathToFileURL(join(import.meta.dirname, '../../dist', path)).href)) as T;
}
