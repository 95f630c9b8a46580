import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of a package from npm, such as `name@1.0.0`, downloaded once. */
export function fetchPackage(cache: string, name: string): string {
  const folder = join(cache, name.replaceAll('/', '-'));
  if (existsSync(folder)) return folder;
  const part = `${folder}.part`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  const file = execFileSync('npm', ['pack', name, '--silent'], { cwd: part, encoding: 'utf8' }).trim();
  execFileSync('tar', ['xzf', file], { cwd: part });
  renameSync(part, folder);
  return folder;
}
