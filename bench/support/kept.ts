// Keeps results that take minutes between runs, under a name that identifies their inputs.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const built = fileURLToPath(new URL('../../src/', import.meta.url));

/** Ten digits that change with the compiled sources of some folders. */
export function versionOf(folders: readonly string[]): string {
  const hash = createHash('sha256');
  for (const folder of folders) {
    const names = readdirSync(join(built, folder), { recursive: true, encoding: 'utf8' });
    for (const name of names.filter((each) => each.endsWith('.js')).sort()) {
      hash.update(`${folder}/${name}\0`).update(readFileSync(join(built, folder, name)));
    }
  }
  return hash.digest('hex').slice(0, 10);
}

/** The path for these sources and parameters; removes results of other sources with the same parameters. */
export function keptPath(folder: string, parameters: string, version: string): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${parameters}.${version}`);
  for (const name of readdirSync(folder)) {
    const isOlder = name.startsWith(`${parameters}.`) && /^[0-9a-f]{10}$/.test(name.slice(parameters.length + 1));
    if (isOlder && name !== basename(path)) rmSync(join(dirname(path), name), { recursive: true, force: true });
  }
  return path;
}
