// Builds dist/: TypeScript by tsc, WASM kernels by the AssemblyScript compiler, modules for browsers by rolldown, the dashboard by vite.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { buildBrowser } from './build-browser.mjs';
import { buildDashboard } from './build-dashboard.mjs';
import { buildDocs } from './build-docs.mjs';
import { tryBuildNative } from './build-native.mjs';
import { ensureInstalled, nodeTool, requireWritable, root, runOrExit } from './setup.mjs';

const assembly = join(root, 'src/kernels/wasm/assembly');

// One source, three builds: for engines whose relaxed dot product is Arm's SDOT, for others with relaxed SIMD, plain SIMD128.
// Each also with 64-bit addresses.
const WASM_BUILDS = [
  { name: 'kernels.dot', relaxed: true, signedDot: true },
  { name: 'kernels.relaxed', relaxed: true, signedDot: false },
  { name: 'kernels.simd', relaxed: false, signedDot: false },
].flatMap((build) => [32, 64].map((addressBits) => ({ ...build, addressBits })));
const WASM64_TRANSFORM = join(root, 'scripts/wasm64-transform.mjs');

function newestIn(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Math.max(0, ...files.map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs));
}

export function build({ force = false, isDashboardOptional = false } = {}) {
  ensureInstalled();
  buildLibrary(force);
  buildBrowser({ force, isOptional: isDashboardOptional });
  buildDashboard({ force, isOptional: isDashboardOptional });
  buildDocs({ force });
}

function buildLibrary(force) {
  const stamp = join(root, 'dist/index.js');
  const sources = Math.max(newestIn(join(root, 'src')), statSync(join(root, 'package-lock.json')).mtimeMs);
  if (!force && existsSync(stamp) && statSync(stamp).mtimeMs > sources) return;
  requireWritable('dist', 'the library must be built there');
  console.error('Building …');
  // Outputs of sources that were moved or deleted would stay and be published.
  const dist = join(root, 'dist');
  const outputs = existsSync(dist) ? readdirSync(dist).filter((name) => name !== 'dashboard' && name !== 'docs') : [];
  for (const name of outputs) rmSync(join(dist, name), { recursive: true });
  const out = join(dist, 'kernels/wasm');
  mkdirSync(out, { recursive: true });
  for (const { name, relaxed, signedDot, addressBits } of WASM_BUILDS) {
    const features = ['simd', 'threads', ...(relaxed ? ['relaxed-simd'] : [])].flatMap((feature) => [
      '--enable',
      feature,
    ]);
    runOrExit(
      ...nodeTool(
        'assemblyscript/bin/asc.js',
        join(assembly, 'index.ts'),
        '-O3',
        '--noAssert',
        '--disableWarning', // v128 in function signatures: these never leave the module.
        '112',
        '--runtime',
        'stub',
        ...features,
        '--use',
        `SIGNED_DOT=${signedDot ? 1 : 0}`,
        '--importMemory',
        '--sharedMemory',
        '--initialMemory',
        '1',
        '--maximumMemory',
        '65536',
        ...(addressBits === 64 ? ['--transform', WASM64_TRANSFORM] : []),
        '-o',
        join(out, `${name}${addressBits === 64 ? '64' : ''}.wasm`),
      ),
    );
  }
  runOrExit(...nodeTool('typescript/bin/tsc', '-p', 'tsconfig.json'));
}

if (process.argv[1] && import.meta.filename === process.argv[1]) {
  build({ force: true });
  await tryBuildNative(); // The native kernels read records that dist/ writes, so both must have the same age.
}
