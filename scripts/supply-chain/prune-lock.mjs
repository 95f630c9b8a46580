// node scripts/supply-chain/prune-lock.mjs: removes from package-lock.json the names of binaries for other platforms that it has no hash of.
// npm ci rejects a lock file with such names. For a copy that is thrown away, such as a layer of an image.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(import.meta.dirname, '../../package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8'));
for (const entry of Object.values(lock.packages)) {
  for (const name of Object.keys(entry.optionalDependencies ?? {})) {
    if (lock.packages[`node_modules/${name}`] === undefined) delete entry.optionalDependencies[name];
  }
}
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
