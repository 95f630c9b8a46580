// npm run check:reproducible: builds and packs the committed sources in two folders of different names, and compares the packages.
// Takes minutes. Exit code 1: they differ; the differing files are named.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureInstalled, root } from './setup.mjs';

const sha256 = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

/** Returns the package's hash and those of its files. */
function buildIn(folder) {
  mkdirSync(folder, { recursive: true });
  const archive = execFileSync('git', ['archive', 'HEAD'], { cwd: root, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  const run = (...args) =>
    execFileSync(args[0], args.slice(1), { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  run(process.execPath, 'scripts/run.mjs', 'prepack');
  run('npm', 'pack', '--ignore-scripts', '--silent', '--pack-destination', folder);
  const [name] = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  const out = join(folder, 'unpacked');
  mkdirSync(out);
  run('tar', '-xzf', join(folder, name), '-C', out);
  const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name));
  return {
    hash: sha256(join(folder, name)),
    files: new Map(paths.map((path) => [path.slice(out.length + 1), sha256(path)])),
  };
}

ensureInstalled();
const temporary = mkdtempSync(join(tmpdir(), 'ruvllm-reproducible-'));
try {
  const [first, second] = ['one', 'another-folder/two'].map((name) => buildIn(join(temporary, name)));
  const paths = [...new Set([...first.files.keys(), ...second.files.keys()])].toSorted();
  const different = paths.filter((path) => first.files.get(path) !== second.files.get(path));
  for (const path of different) console.error(`check:reproducible: ${path} differs`);
  const isSame = first.hash === second.hash;
  console.log(`check:reproducible: ${first.files.size} files, ${isSame ? `equal packages, SHA-256 ${first.hash}` : `${different.length} differ`}`); // prettier-ignore
  process.exitCode = isSame ? 0 : 1;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
