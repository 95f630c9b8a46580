// The package's record of its native files: a hash of each, and whether this checkout compiled it.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** One hash over the names and contents of the C sources. */
export function hashSources(folder) {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).toSorted()) {
    if (!statSync(join(folder, name)).isFile()) continue;
    hash.update(`${name}\0`).update(
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest(),
    );
  }
  return hash.digest('hex');
}

/**
 * Native files below `prebuilds`, by path. `isCompiledHere`: `build-native.mjs` has a stamp of exactly this file; otherwise it was
 * copied here, and its sources are unknown.
 */
export function listPrebuilds(prebuilds, stamps) {
  if (!existsSync(prebuilds)) return [];
  const folders = readdirSync(prebuilds, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders
    .flatMap(({ name }) => readdirSync(join(prebuilds, name)).map((file) => ({ name, file })))
    .filter(({ file }) => file.endsWith('.node'))
    .toSorted((a, b) => (`${a.name}/${a.file}` < `${b.name}/${b.file}` ? -1 : 1))
    .map(({ name, file }) => {
      const path = join(prebuilds, name, file);
      const { size, mtimeMs } = statSync(path);
      const stamp = join(stamps, `${name}-${file.slice('ruvllm-'.length, -'.node'.length)}`);
      const identity = existsSync(stamp) ? readFileSync(stamp, 'utf8').split(' ').slice(1).join(' ') : null;
      const isCompiledHere = identity === `${size} ${mtimeMs}`;
      return { path: `prebuilds/${name}/${file}`, size, sha256: sha256(readFileSync(path)), isCompiledHere };
    });
}

/** The text of `prebuilds/provenance.json`. */
export function describePrebuilds({ prebuilds, stamps, sources }) {
  const files = listPrebuilds(prebuilds, stamps);
  return `${JSON.stringify({ sources: hashSources(sources), files }, null, 2)}\n`;
}
