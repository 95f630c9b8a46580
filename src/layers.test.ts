import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Which folder may import which. `docs/architecture.md` explains the rows. */
const LAYERS: Record<string, readonly string[] | 'anything'> = {
  core: [],
  quant: ['core'],
  gguf: ['core', 'quant'],
  kernels: ['core', 'quant'],
  tokenizers: ['core', 'gguf'],
  chat: ['core'],
  mcp: ['core'],
  models: ['core', 'gguf', 'kernels', 'quant'],
  vision: ['core', 'gguf', 'kernels', 'models'],
  'kv-cache': ['core', 'kernels'],
  adapters: ['core', 'quant', 'gguf', 'kernels'],
  memory: ['core', 'kernels'],
  learning: ['core', 'gguf', 'kernels', 'quant', 'models', 'adapters', 'memory'],
  sampling: ['core', 'tokenizers'],
  engine: ['core', 'gguf', 'kernels', 'models', 'kv-cache', 'adapters', 'sampling'],
  runtime: [
    'core',
    'quant',
    'gguf',
    'kernels',
    'tokenizers',
    'chat',
    'mcp',
    'models',
    'vision',
    'kv-cache',
    'sampling',
    'engine',
    'memory',
    'adapters',
    'learning',
  ],
  server: ['core', 'runtime'],
  // Nodes are servers: a gateway shares their routes, keys and errors, and adds the choice of a node.
  gateway: ['core', 'runtime', 'server'],
  'ai-sdk': ['core', 'runtime'],
  hub: ['core', 'gguf'],
  // Drivers: they implement interfaces of these layers. Types may come from any layer below the server.
  platform: ['core', 'gateway', 'gguf', 'hub', 'kernels', 'kv-cache', 'mcp', 'memory'],
  node: 'anything',
  browser: 'anything',
  cli: 'anything',
};
const PLATFORM_FOLDERS = new Set(['platform', 'node', 'cli']);

const root = dirname(fileURLToPath(import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !/\.(test|contract)\.ts$/.test(file) && !file.includes('assembly'),
);

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  return [...text.matchAll(/(?:from|import\(|import)\s*['"]([^'"]+)['"]/g)].map((match) => match[1]!);
}

test('every folder imports only what its row of the layer table allows', () => {
  const violations: string[] = [];
  for (const file of files) {
    const layer = file.includes(sep) ? file.split(sep)[0]! : null;
    if (layer === null) continue; // src/index.ts: the public face, re-exports only
    const allowed = LAYERS[layer];
    if (allowed === undefined) violations.push(`${file}: folder "${layer}" is not in the layer table`);
    for (const specifier of importsOf(file)) {
      if (specifier.startsWith('node:') && !PLATFORM_FOLDERS.has(layer)) violations.push(`${file}: ${specifier}`);
      if (!specifier.startsWith('.')) continue;
      const target = relative(root, join(root, dirname(file), specifier)).split(sep)[0]!;
      if (target !== layer && allowed !== 'anything' && !allowed?.includes(target))
        violations.push(`${file}: ${target}`);
    }
  }
  expect(violations).toEqual([]);
  expect(files.length).toBeGreaterThan(5);
});

test('no file imports itself through other files', () => {
  const imports = new Map(
    files.map((file) => [
      file,
      importsOf(file)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => join(dirname(file), specifier)),
    ]),
  );
  const circles: string[] = [];
  const isDone = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' -> '));
    if (isDone.has(file) || path.includes(file)) return;
    path.push(file);
    for (const target of imports.get(file) ?? []) visit(target);
    path.pop();
    isDone.add(file);
  };
  for (const file of files) visit(file);
  expect(circles).toEqual([]);
});
