// Bundles src/ into a folder: what package.json exports, the command, and one script for each thread. Chunks are shared, and what is
// imported with import() stays apart, so that a process loads what it uses.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './setup.mjs';

const sources = join(root, 'src');

/** Subpaths of the package by the name of their file. `browser` is built for pages, apart. */
function readSubpaths() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = Object.keys(exports).filter((name) => !/json$|browser$/.test(name));
  return names.map((name) => (name === '.' ? ['index', 'index.ts'] : [name.slice(2), `${name.slice(2)}/index.ts`]));
}

/** Scripts of threads and processes: `new URL('./NAME.js', import.meta.url)` finds them, because all files are in one folder. */
function listThreads() {
  const names = ['node', 'platform/node'].flatMap((folder) =>
    readdirSync(join(sources, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  return names
    .filter((name) => /-(?:worker|process)\.ts$/.test(name) && isScript(name))
    .map((name) => [basename(name, '.ts'), name]);
}

/** A module without exports is run, not imported. */
const isScript = (name) => !/^export /m.test(readFileSync(join(sources, name), 'utf8'));

/** Modules that tests import one by one, under names with `~` for `/`: bundled like the others, they and their threads start as fast. */
function listTested() {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts') && !name.includes('node_modules')); // prettier-ignore
  const texts = files.map((name) => readFileSync(join(root, 'test', name), 'utf8')).join('\n');
  const paths = [...texts.matchAll(/typeof import\('(?:\.\.\/)+src\/([^']+)\.ts'\)>\(/g)].map(([, path]) => path);
  return [...new Set(paths)].map((path) => [path.replaceAll('/', '~'), `${path}.ts`]);
}

const [folder, isForTests = false] = process.argv.slice(2);
const entries = isForTests ? listTested() : [...readSubpaths(), ['cli', 'cli/main.ts']];
const bundle = await rolldown({
  input: Object.fromEntries([...entries, ...listThreads()].map(([name, path]) => [name, join(sources, path)])),
  platform: 'node',
  // Packages are installed beside ours.
  external: (id) => !/^(?:\.|[\\/]|[a-z]:)/i.test(id),
  onLog(level, log, handle) {
    if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    handle(level, log);
  },
});
/**
 * V8 keeps the text of all code, in two bytes a character if a single one is outside Latin-1: escapes halve it. A backslash before such a
 * character means nothing.
 */
const toAscii = (code) =>
  code.replaceAll(/(\\*)([^\0-\x7f])/g, (_, backslashes, unit) => {
    const kept = backslashes.length % 2 === 1 ? backslashes.slice(1) : backslashes;
    return `${kept}\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

const { output } = await bundle.generate({
  format: 'es',
  // Less text, with the names that people meet in stack traces.
  minify: { compress: false, mangle: false, codegen: true },
  comments: false,
  entryFileNames: '[name].js',
  // Named apart, so that a bench finds what a command loads.
  chunkFileNames: ({ facadeModuleId }) =>
    facadeModuleId?.startsWith(join(sources, 'cli/commands')) ? 'command-[name]-[hash].js' : '[name]-[hash].js',
});
await bundle.close();
mkdirSync(folder, { recursive: true });
for (const { fileName, code } of output) writeFileSync(join(folder, fileName), toAscii(code));
