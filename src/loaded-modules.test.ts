// What is loaded before it is asked for: a module takes tens of kilobytes of a process, used or not.
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = dirname(fileURLToPath(import.meta.url));
// Statements at the start of a line: only those with `import type` are erased, and `import()` is what happens later.
const STATIC_IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^'";]*?\s+from\s+)?['"](?<specifier>[^'"]+)['"]/gm;

/** Files of src/, and packages, that are loaded with a file. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  for (const { groups } of readFileSync(join(root, file), 'utf8').matchAll(STATIC_IMPORT)) {
    const { specifier } = groups as { specifier: string };
    if (specifier.startsWith('.')) loadedWith(normalize(join(dirname(file), specifier)), loaded);
    else loaded.add(specifier);
  }
  return loaded;
}

test('the library loads neither a model’s parts nor the memory’s before they are asked for', () => {
  const loaded = loadedWith('index.ts');
  expect([...loaded].toSorted()).toEqual([
    'core/errors.ts',
    'core/show-value.ts',
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

/** What is needed only later: with the first load, the first request to a route, or an option. */
const LATER = String.raw`
  adapters/(?!affects-kv|create-adapter|target-shapes|types) chat/ engine/(?!types) gguf/(convert|requantize|safetensors|writer)
  kernels/(?!kernel-choice) learning/(federation|graph-attention|lora-training|rerank-training|router|sona|training)/
  mcp/(client|server) memory/memory\. memory/operations/(?!operation-names) models/ vision/(?!image-)
  node/(engine/estimate|learning|load-model|mcp|memory/open-memory|shared-tier|text|training|quantize|vision)
  platform/node/(memory|shared-pages)/ runtime/(load-model|model|generation)\. runtime/learning/(open-learning|learning)\.
  runtime/routing/ sampling/grammar/ server/routes/(?!table|routes-of|dashboard) tokenizers/`;
/** A command without a server or a memory. */
const ALONE = String.raw`server/(?!errors|wire/) memory/(?!documents/describe-place|types) zod @?hono`;

test.each([
  ['serve', 400, ''],
  ['gateway', 150, String.raw`gguf/ hub/ memory/(?!operations/|state-tenant|documents/limits|schemas/text-lengths) quant/ zod hono$`], // prettier-ignore
  ['chat', 250, ALONE],
  ['run', 230, ALONE],
])('%s loads at most %i files, and nothing that is needed later', (command, most, others) => {
  const loaded = [...loadedWith(`cli/commands/${command}.ts`)];
  const later = new RegExp(`^(?:${`${LATER} ${others}`.trim().split(/\s+/).join('|')})`);
  expect(loaded.filter((file) => later.test(file))).toEqual([]);
  expect(loaded.filter((file) => file.endsWith('.ts')).length).toBeLessThanOrEqual(most);
});

test.each([
  ['node/engine/engine-worker.ts', /^(chat|cli|hub|learning|mcp|memory|server|tokenizers|vision)\/|^gguf\/(convert|requantize|safetensors)|^kernels\/(wasm|webgpu)\/.*pack\.|^platform\/node\/shared-pages|^zod/], // prettier-ignore
  ['node/engine/sampler-worker.ts', /^(?!core\/|engine\/|sampling\/|node\/engine\/sampler-worker|node:)/],
  ['node/text/text-worker.ts', /^(adapters|cli|engine|hub|kernels|learning|memory|models|sampling|server)\/|^zod/],
  ['node/text/table-worker.ts', /^(adapters|chat|cli|engine|hub|kernels|learning|memory|models|server)\/|^sampling\/grammar\/(schema|structure|automata)\/|^zod/], // prettier-ignore
  ['node/text/grammar-worker.ts', /^(?!core\/|engine\/|sampling\/|node\/text\/|node:)/],
  ['node/vision/vision-worker.ts', /^(adapters|chat|cli|engine|hub|learning|memory|sampling|server|tokenizers)\/|^kernels\/(wasm|webgpu)\/.*pack\.|^zod/], // prettier-ignore
  ['node/learning/learning-worker.ts', /^(chat|cli|engine|hub|sampling|server|tokenizers|vision)\/|^kernels\/(wasm|webgpu)\/.*pack\.|^zod/], // prettier-ignore
  ['node/memory/document-worker.ts', /^(?!core\/|memory\/documents\/|node\/memory\/|node:)/],
])('%s loads no other part of the program', (worker, foreign) => {
  const loaded = [...loadedWith(worker)];
  expect(loaded.filter((file) => foreign.test(file))).toEqual([]);
  expect(loaded.length).toBeGreaterThan(5);
});

test('what a loaded model needs only with an option is not loaded with it', () => {
  const loaded = [...loadedWith('node/load-model.ts')];
  const early =
    /^(?:sampling\/grammar\/|vision\/(?!image-)|gguf\/(?:convert|requantize)|kernels\/.*pack\.|models\/registry|adapters\/.*-adapter\.)/;
  expect(loaded.filter((file) => early.test(file) && file !== 'adapters/create-adapter.ts')).toEqual([]);
});
