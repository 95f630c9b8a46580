// The content of `npm pack`: every subpath of package.json, and no development files.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/lib/index.js'));
if (!isBuilt) console.log('package tests skipped: dist/ is not built, run "npm run build"');

interface Manifest {
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  exports: Record<string, string | { types: string; default: string }>;
}

const { exports, dependencies, peerDependencies } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
) as Manifest;
const subpaths = Object.entries(exports).flatMap(([name, target]) =>
  typeof target === 'string' ? [] : [{ specifier: name.replace('.', 'ruvllm'), ...target }],
);

/** An essential export of each subpath. */
const MAIN_EXPORTS: Record<string, readonly string[]> = {
  ruvllm: ['loadModel', 'RuvLLMError'],
  'ruvllm/gguf': ['openGguf', 'createMemorySource', 'convertLlama2c', 'convertSafetensors'],
  'ruvllm/quant': ['quantFormats'],
  'ruvllm/tokenizers': ['createTokenizer'],
  'ruvllm/chat': ['createChatTemplate'],
  'ruvllm/kernels': ['createReferencePackFactory', 'createWasmPackFactory', 'PAGE_TOKENS'],
  'ruvllm/hub': ['createHub', 'parseModelReference'],
  'ruvllm/server': ['createServer', 'createModelHost', 'createKeyStore'],
  'ruvllm/node': [
    'listen',
    'openKeyFolder',
    'createNodeHubPlatform',
    'createNodeWasmPlatform',
    'openModelFile',
    'openFileSource',
    'createFileSink',
  ],
  'ruvllm/browser': [
    'loadModel',
    'storeModel',
    'listModels',
    'removeModel',
    'openMemory',
    'openDeviceKey',
    'detectCapabilities',
    'RuvLLMError',
  ],
  'ruvllm/ai-sdk': ['languageModel', 'embeddingModel'],
};

test('the list above names every subpath', () => {
  expect(subpaths.map(({ specifier }) => specifier)).toEqual(Object.keys(MAIN_EXPORTS));
});

test.skipIf(!isBuilt).each(subpaths)('$specifier can be imported by its name and has types', ({ specifier, types }) => {
  const code = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(specifier)}))))`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], { cwd: root, encoding: 'utf8' });
  expect(JSON.parse(output)).toEqual(expect.arrayContaining([...MAIN_EXPORTS[specifier]!]));
  // npm pack writes the declarations; until then their source is what they are made from.
  expect(
    existsSync(join(root, types.replace('./dist/types/', 'src/').replace(/(?:\/index)?\.d\.ts$/, '/index.ts'))),
  ).toBe(true);
});

test.skipIf(!isBuilt)('the package has the command, all kernel builds, and no sources or tests', () => {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    shell: process.platform === 'win32',
  });
  const [{ files }] = JSON.parse(output) as [{ files: { path: string }[] }];
  const paths = files.map(({ path }) => path);
  expect(paths).toEqual(
    expect.arrayContaining([
      'bin/ruvllm.mjs',
      'wasm/kernels.dot.wasm',
      'wasm/kernels.relaxed.wasm',
      'wasm/kernels.simd.wasm',
      'wasm/kernels.dot64.wasm',
      'wasm/kernels.relaxed64.wasm',
      'wasm/kernels.simd64.wasm',
      'dist/lib/engine-worker.js',
      'dist/browser-modules/index.js',
      'dist/browser-modules/engine-worker.js',
      'dist/browser-modules/kernels.relaxed.wasm',
      'dist/browser-modules/kernels.relaxed64.wasm',
      'dist/dashboard/index.html',
      'LICENSE',
    ]),
  );
  expect(
    paths
      .filter((path) => !/^(?:bin\/|dist\/|wasm\/|prebuilds\/(?:[^/]+\/ruvllm-\w+\.node|provenance\.json)$)/.test(path))
      .toSorted(),
  ).toEqual([
    'LICENSE',
    'README.md',
    'datasets/embeddings.jsonl',
    'datasets/learning.jsonl',
    'datasets/memory.jsonl',
    'datasets/routing.jsonl',
    'package.json',
    'schemas/ruvllm.config.schema.json',
  ]);
  expect(paths.filter((path) => /\.(test|contract)\.|\.map$|^dist\/docs\/(?:decisions|log)/.test(path))).toEqual([]);
  expect(paths.length).toBeLessThanOrEqual(900);
});

// A development-only package would be missing for every user, but in no test.
test.skipIf(!isBuilt)('dist/ imports only Node, its dependencies and the optional peers', () => {
  const allowed = new Set([...builtinModules, ...Object.keys(dependencies), ...Object.keys(peerDependencies)]);
  const optional = new Set(['@opentelemetry/api']); // Imported only if the caller's program has it.
  const files = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.js') && !file.startsWith('dashboard'),
  );
  const foreign = files.flatMap((file) => {
    const code = readFileSync(join(root, 'dist', file), 'utf8');
    const imports = code.matchAll(
      /^(?:import|export)\s+(?:[\w$\s{},*]*?\sfrom\s+)?['"]([^'"\n]+)['"]|\bimport\(\s*['"]([^'"\n]+)['"]/gm,
    );
    return (
      [...imports]
        .map(([, specifier, dynamic]) => (specifier ?? dynamic)!)
        // Bundled code of others has imports in its texts.
        .filter((specifier) => !/^(?:\.|node:)/.test(specifier) && !specifier.includes('${'))
        .map((specifier) =>
          specifier
            .split('/')
            .slice(0, specifier.startsWith('@') ? 2 : 1)
            .join('/'),
        )
        .filter((name) => !allowed.has(name) && !optional.has(name))
        .map((name) => `${file}: ${name}`)
    );
  });
  expect(files.length).toBeGreaterThan(100);
  expect(foreign).toEqual([]);
});
