// `ruvllm show`: whether a file loads, what prevents it, and what it costs.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runCli } from '../src/cli/run-cli.ts';
import type { TensorTypeName } from '../src/core/tensor-type.ts';
import { quantFormats } from '../src/quant/index.ts';
import { createFakeIo } from './support/cli-io.ts';
import { importDist } from './support/import-dist.ts';
import { buildRandomModel, type RandomModelOptions } from './support/random-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-show-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SHAPE = { embeddingDim: 256, feedForwardDim: 256, numLayers: 2, numHeads: 8, numKvHeads: 8, headDim: 32 };

function writeModel(name: string, options: Partial<RandomModelOptions>, edit?: (bytes: Uint8Array) => void): string {
  const path = join(folder, `${name}.gguf`);
  const bytes = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 5, shape: SHAPE, ...options });
  edit?.(bytes);
  writeFileSync(path, bytes);
  return path;
}

interface Shown {
  readonly problems: readonly string[];
  readonly memory: { readonly totalBytes: number } | null;
  readonly contexts: readonly { readonly tokens: number; readonly totalBytes: number }[];
  readonly types: readonly { readonly type: string; readonly bitsInFile: number; readonly bitsInMemory: number }[];
  readonly fitting: { readonly name: string; readonly totalBytes: number } | null;
}

async function show(path: string): Promise<{ document: Shown; text: string }> {
  const outputs: string[] = [];
  for (const flags of [['--json'], []]) {
    const io = createFakeIo({ folder, columns: 400, isTerminal: true });
    expect(await runCli(['show', path, ...flags], '9.9.9', io), io.written.stderr).toBe(0);
    // eslint-disable-next-line no-control-regex
    outputs.push(io.written.stdout.replaceAll(/\x1b\[\d+m/g, ''));
  }
  return { document: JSON.parse(outputs[0]!) as Shown, text: outputs[1]! };
}

/** Changes the type number of a tensor in the header. */
const setType =
  (tensor: string, type: number) =>
  (bytes: Uint8Array): void => {
    const at = Buffer.from(bytes.buffer).indexOf(Buffer.from(tensor)) + tensor.length;
    const view = new DataView(bytes.buffer);
    view.setUint32(at + 4 + 8 * view.getUint32(at, true), type, true);
  };

test('a file that loads: memory at several contexts, bits of its types, the best quantization that fits', async () => {
  const path = writeModel('loads', {
    type: 'IQ2_XS',
    metadata: [{ key: 'llama.context_length', type: 'u32', value: 8192 }],
  });
  const { document, text } = await show(path);
  expect(document.problems).toEqual([]);
  expect(document.contexts.map(({ tokens }) => tokens)).toEqual([4096, 8192]);
  expect(document.contexts[1]!.totalBytes).toBeGreaterThan(document.contexts[0]!.totalBytes);
  expect(document.types[0]).toMatchObject({ type: 'IQ2_XS', bitsInFile: 74 / 32 });
  expect(document.types[0]!.bitsInMemory).toBeGreaterThan(5.9);
  expect(document.fitting!.name).toBe('Q8_0');
  expect(text).toMatch(/loads +yes/);
  expect(text).toMatch(/unpacked +.* more than in the file: IQ2_XS [67]\.\d bits instead of 2\.3/);
  expect(text).toMatch(/fits +up to Q8_0/);
});

test('a context whose pages cannot be addressed is left out, and the file still loads', async () => {
  const metadata = [{ key: 'llama.context_length', type: 'u32', value: 2 ** 27 }] as const;
  const { document } = await show(writeModel('long', { metadata }));
  expect(document.problems).toEqual([]);
  expect(document.contexts.map(({ tokens }) => tokens)).toEqual([4096, 32_768]);
});

test('names unknown tensor types with their tensors', async () => {
  const path = writeModel('types', {}, (bytes) => {
    setType('blk.0.attn_q.weight', 77)(bytes);
    setType('blk.1.attn_q.weight', 77)(bytes);
    setType('blk.1.ffn_up.weight', 24)(bytes);
  });
  const { document, text } = await show(path);
  expect(document.problems).toEqual([
    'tensor type 77 is not supported: 2 tensors, such as blk.0.attn_q.weight',
    'tensor type 24 (I8) is not supported: 1 tensor, such as blk.1.ffn_up.weight',
  ]);
  expect(document.memory).toBeNull();
  expect(text).toMatch(/loads +no/);
  expect(text).not.toMatch(/^fits/m);
});

test('names every missing tensor', async () => {
  const missing = ['blk.0.attn_v.weight', 'blk.1.ffn_down.weight'];
  const { document } = await show(writeModel('missing', { omit: (name) => missing.includes(name) }));
  expect(document.problems).toHaveLength(2);
  missing.forEach((name, i) => expect(document.problems[i]).toContain(`tensor "${name}" is missing`));
});

test('counts the problems beyond the first eight', async () => {
  const { document } = await show(writeModel('empty', { omit: (name) => /^blk\.[01]\.(attn|ffn)_/.test(name) }));
  expect(document.problems).toHaveLength(9);
  expect(document.problems.at(-1)).toMatch(/^\d+ more of this kind$/);
});

test('names an architecture that is not supported', async () => {
  const metadata = [{ key: 'general.architecture', type: 'string', value: 'mamba9' }] as const;
  const { document } = await show(writeModel('architecture', { metadata }));
  expect(document.problems).toEqual([expect.stringContaining('no forward pass for architecture "mamba9"')]);
});

test('a file of all tensor types mixed loads and answers', async () => {
  const types = (Object.keys(quantFormats) as TensorTypeName[]).filter((type) => type !== 'F32');
  let next = 0;
  const typeOf = (): TensorTypeName => types[next++ % types.length]!;
  const path = writeModel('mixed', { shape: { ...SHAPE, numLayers: 5 }, typeOf });
  expect(next).toBeGreaterThanOrEqual(types.length);
  const { document } = await show(path);
  expect(document.problems).toEqual([]);
  expect(document.types.length).toBe(types.length);
  const { loadModel } = await importDist<typeof import('../src/index.ts')>('index.js');
  const model = await loadModel(path, { numThreads: 1 });
  try {
    const answer = await model.generate('Hello', { maxTokens: 3, temperature: 0 });
    expect(answer.usage.completionTokens).toBeGreaterThan(0);
  } finally {
    await model.dispose();
  }
});

test.each([
  ['dense', { numLayers: 9 }],
  ['mixture', { numLayers: 3, experts: { numExperts: 8, numUsed: 3, feedForwardDim: 64 } }],
])('a file of Gemma 4 with heads of two sizes loads: %s', async (name, shape) => {
  const path = writeModel(`gemma4-${name}`, { architecture: 'gemma4', type: 'Q8_0', shape });
  const { document } = await show(path);
  expect(document.problems).toEqual([]);
  expect(document.memory!.totalBytes).toBeGreaterThan(0);
});
