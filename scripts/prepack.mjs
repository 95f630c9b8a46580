// Before npm pack: builds dist/ and lists the platforms whose native kernels go into the package.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TARGETS } from './build-prebuilds.mjs';
import { prebuildName } from './build-native.mjs';
import { buildTypes } from './build-types.mjs';
import { build } from './build.mjs';
import { findLibraryProblem } from './inspect-library.mjs';
import { root } from './setup.mjs';
import { describePrebuilds } from './supply-chain/prebuilds.mjs';

await build();
await buildTypes();
const states = TARGETS.map((target) => {
  const name = prebuildName(target.platform, target.arch, target.libc);
  const folder = join(root, 'prebuilds', name);
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.node')) : [];
  const problem = files.map((file) => findLibraryProblem(readFileSync(join(folder, file)), target)).find(Boolean);
  return { name, isInside: files.length > 0, problem };
});
const list = (isInside) => states.filter((state) => state.isInside === isInside).map(({ name }) => name).join(', ') || 'none'; // prettier-ignore
console.error(`native kernels in this package: ${list(true)}`);
console.error(`platforms left to WASM: ${list(false)} (npm run build:prebuilds builds all)`);
for (const { name, problem } of states) if (problem) console.error(`warning: a file of prebuilds/${name} ${problem}`);
const prebuilds = join(root, 'prebuilds');
mkdirSync(prebuilds, { recursive: true });
writeFileSync(
  join(prebuilds, 'provenance.json'),
  describePrebuilds({
    prebuilds,
    stamps: join(root, '.cache/native'),
    sources: join(root, 'src/kernels/native/c'),
  }),
);
