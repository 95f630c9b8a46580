// Packages that are installed outside package-lock.json, each with its SHA-512 in pinned.json. pin.mjs writes that file.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const PINNED = join(import.meta.dirname, 'pinned.json');
const QUIET = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];

/** `archives`: integrity by `name@version`. `sets`: the packages of lock files, by the name of the set. */
export const readPins = () => JSON.parse(readFileSync(PINNED, 'utf8'));

export const integrityOf = (bytes) => `sha512-${createHash('sha512').update(bytes).digest('base64')}`;

function npm(args, cwd) {
  return spawnSync('npm', args, { cwd, encoding: 'utf8', shell: process.platform === 'win32' }).status === 0;
}

/**
 * Puts the files of `name@version` into `folder`, if its archive has the pinned hash. Returns null, or why it is not there; nothing of
 * another archive is unpacked.
 */
export function installArchive(spec, folder, { archives } = readPins()) {
  const pinned = archives[spec];
  if (pinned === undefined) return `its hash is not in ${PINNED}: add it with "npm run pin -- ${spec}"`;
  mkdirSync(dirname(folder), { recursive: true });
  const part = mkdtempSync(join(dirname(folder), '.part-'));
  try {
    const args = ['pack', spec, '--pack-destination', part, '--fetch-retries=1', '--fetch-retry-mintimeout=500'];
    if (!npm([...args, ...QUIET], part)) return 'the registry does not have it, or does not answer';
    const [file] = readdirSync(part);
    const found = integrityOf(readFileSync(join(part, file)));
    if (found !== pinned) return `its archive has the hash ${found}, and ${pinned} is pinned`;
    // A relative path: tar takes what is before a colon for another machine.
    if (spawnSync('tar', ['-xzf', file], { cwd: part }).status !== 0) return 'tar cannot unpack its archive';
    rmSync(join(part, file));
    // The folder in an archive has any name.
    const [inside] = readdirSync(part);
    rmSync(folder, { recursive: true, force: true });
    renameSync(join(part, inside), folder);
    return null;
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

/** Installs a set of packages into `folder`, which then has nothing else; npm compares each with its hash. */
export function installSet(name, folder, { sets } = readPins()) {
  const packages = sets[name];
  if (packages === undefined) throw new Error(`there is no set ${name} in ${PINNED}`);
  mkdirSync(folder, { recursive: true });
  const manifest = { private: true, ...packages[''] };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, requires: true, packages }));
  return npm(['ci', '--legacy-peer-deps', ...QUIET], folder);
}
