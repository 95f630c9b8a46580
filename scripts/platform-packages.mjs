// Packages with a binary for one platform (@rolldown/binding-linux-x64-gnu) that a lock file's packages name.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIBC_SUFFIXES = { glibc: ['', '-gnu'], musl: ['', '-musl'] };

/** This process's platform in npm's terms. `libc` is null outside Linux. */
export function currentPlatform() {
  const { platform: os, arch } = process;
  if (os !== 'linux') return { os, arch, libc: null };
  process.report.excludeNetwork = true; // Otherwise the report resolves the name of every open socket.
  return { os, arch, libc: process.report.getReport().header.glibcVersionRuntime ? 'glibc' : 'musl' };
}

function isForPlatform(name, { os, arch, libc }) {
  const suffixes = libc === null ? ['', '-msvc'] : LIBC_SUFFIXES[libc];
  return suffixes.some((suffix) => new RegExp(`[-/]${os}-${arch}${suffix}$`).test(name));
}

/** `{ name, version, owner }` of every binary for `platform` that a package of the lock file pins to one version. */
export function listPlatformPackages(lock, platform) {
  return Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies)
      .filter(([name, version]) => /^\d/.test(version) && isForPlatform(name, platform))
      .map(([name, version]) => ({ name, version, owner: path.replace(/^.*node_modules\//, '') })),
  );
}

/** Binaries of this platform that npm omitted: it silently skips an optional package that the lock file does not list. */
export function findMissingPlatformPackages(root, platform = currentPlatform()) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const has = (name) => existsSync(join(root, 'node_modules', name, 'package.json'));
  return listPlatformPackages(lock, platform).filter(({ name, owner }) => has(owner) && !has(name));
}
