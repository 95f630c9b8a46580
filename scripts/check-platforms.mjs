// npm run check:platforms [LOCK]: every binary that a locked package names for Linux on x64 and arm64 is in the lock file and in the
// registry. One missing binary breaks npm start on that platform, unnoticed elsewhere. Exit code 1: a binary is missing. 2: the
// registry did not answer.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listPlatformPackages } from './platform-packages.mjs';
import { askRegistry } from './registry.mjs';
import { root } from './setup.mjs';

const PLATFORMS = ['x64', 'arm64'].map((arch) => ({ os: 'linux', arch, libc: 'glibc' }));

async function main() {
  const lock = JSON.parse(readFileSync(process.argv[2] ?? join(root, 'package-lock.json'), 'utf8'));
  const packages = PLATFORMS.flatMap((platform) => listPlatformPackages(lock, platform));
  const problems = packages
    .filter(({ name, version }) => lock.packages[`node_modules/${name}`]?.version !== version)
    .map(
      ({ name, version, owner }) => `${name}@${version} is not in the lock file, and ${owner} cannot run without it`,
    );
  const answers = await askRegistry(packages.map(({ name, version }) => `${name}@${version}`));
  const silent = answers.filter(({ state }) => state === 'unreachable');
  for (const { spec, state } of answers) {
    if (state === 'absent') problems.push(`${spec} is not in the registry: pin a version that has it (overrides)`);
  }
  for (const problem of problems) console.error(`check:platforms: ${problem}`);
  if (silent.length > 0) {
    const reasons = [...new Set(silent.map(({ reason }) => reason))].join(', ');
    console.error(
      `check:platforms: the registry did not answer for ${silent.length} of ${answers.length} packages (${reasons})`,
    );
  }
  if (problems.length > 0) return 1;
  if (silent.length > 0) return 2;
  console.log(`check:platforms: ${answers.length} binaries for Linux on x64 and arm64 are locked and in the registry`);
  return 0;
}

process.exitCode = await main();
