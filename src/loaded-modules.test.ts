// What is loaded before it is asked for: a module takes tens of kilobytes of a process, used or not.
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = dirname(fileURLToPath(import.meta.url));
// Statements at the start of a line; types are erased, and `import()` is what happens later.
const STATIC_IMPORT = /^(?:import|export)\s+(?!type\b)(?:(?<names>[^'";]*?)\s+from\s+)?['"](?<specifier>[^'"]+)['"]/gm;

const isErased = (names: string | undefined): boolean =>
  names !== undefined && /^\{[^}]*\}$/.test(names) && names.slice(1, -1).split(',').every((name) => /^\s*(type\s.*)?$/.test(name)); // prettier-ignore

/** Files of src/, and packages, that are loaded with a file. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  for (const { groups } of readFileSync(join(root, file), 'utf8').matchAll(STATIC_IMPORT)) {
    const { names, specifier } = groups as { names?: string; specifier: string };
    if (isErased(names)) continue;
    if (specifier.startsWith('.')) loadedWith(normalize(join(dirname(file), specifier)), loaded);
    else loaded.add(specifier);
  }
  return loaded;
}

test('the library loads neither a model’s parts nor the memory’s before they are asked for', () => {
  const loaded = loadedWith('index.ts');
  expect([...loaded].toSorted()).toEqual([
    'core/errors.ts',
    'index.ts',
    'node/lazy-adapters.ts',
    'node/lazy-router.ts',
    'node/lazy-training.ts',
    'node/lazy.ts',
    'node/learning/lazy.ts',
    'node/mcp/lazy.ts',
    'node/memory/lazy.ts',
    'runtime/model-size.ts',
    'runtime/precision.ts',
  ]);
});

test('the memory’s thread loads kernels, indexes and tokenizers with the first vector or text', () => {
  const loaded = loadedWith('node/memory/memory-worker.ts');
  expect(loaded).toContain('memory/store/sqlite/sqlite-store.ts');
  const early = [...loaded].filter((file) => /^(kernels|tokenizers|gguf|quant|memory\/embedder)\//.test(file) || file === 'zod'); // prettier-ignore
  expect(early).toEqual([]);
  expect([...loaded].filter((file) => file.startsWith('memory/vector-index/'))).toEqual([
    'memory/vector-index/dirty-pages.ts',
    'memory/vector-index/best-hits.ts', // also ranks matches of words
  ]);
});

test('a walk of the imports finds what is loaded', () => {
  const loaded = loadedWith('node/load-model.ts');
  for (const file of ['runtime/load-model.ts', 'tokenizers/tokenizer.ts', 'node:crypto'])
    expect(loaded).toContain(file);
  expect(loaded).not.toContain('node/engine/engine-worker.ts');
});

test('commands that only ask a server load neither schemas nor models', () => {
  for (const command of ['ps', 'stop']) {
    const early = [...loadedWith(`cli/commands/${command}.ts`)].filter(
      (file) => /^(memory|runtime|learning|gguf|server|node)\//.test(file) || file === 'zod',
    );
    expect(early, command).toEqual([]);
  }
  const search = [...loadedWith('cli/commands/memory.ts')];
  expect(search.filter((file) => /^(node|gguf|models|kernels|engine|tokenizers)\//.test(file))).toEqual([]);
});
