// npm run sbom [-- --output FILE]: the packages and native files of this version as CycloneDX JSON, the same bytes for the same lock
// file and files. Exit code 1: a licence, an install script or a missing hash that is not allowed.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './setup.mjs';
import { describePackages } from './supply-chain/cyclonedx.mjs';
import { findProblems } from './supply-chain/licences.mjs';
import { listBundled, readPackages } from './supply-chain/packages.mjs';
import { listPrebuilds } from './supply-chain/prebuilds.mjs';

const { values } = parseArgs({ options: { output: { type: 'string' } } });
const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const packages = readPackages(read('package-lock.json'), listBundled(root));
const problems = findProblems(packages);
const files = listPrebuilds(join(root, 'prebuilds'), join(root, '.cache/native'));
const text = `${JSON.stringify(describePackages(read('package.json'), packages, files), null, 2)}\n`;
if (values.output === undefined) process.stdout.write(text);
else writeFileSync(values.output, text);
for (const problem of problems) console.error(`sbom: ${problem}`);
const numShipped = packages.filter(({ isShipped }) => isShipped).length;
console.error(`sbom: ${packages.length} packages, ${numShipped} of them shipped, ${files.length} native files, ${problems.length} problems`); // prettier-ignore
process.exitCode = problems.length === 0 ? 0 : 1;
