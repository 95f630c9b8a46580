// Adapters in the built package: real files, the engine in its worker thread, a real model.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Adapter, type AdapterBase, describeAdapterFile } from '../src/adapters/index.ts';
import { createMemorySink, createMemorySource, openGguf, writeGguf } from '../src/gguf/index.ts';
import type { Model } from '../src/index.ts';
import { readShape } from '../src/models/shape.ts';
import { importDist } from './support/import-dist.ts';
import { mergeIntoModel } from './support/merged-model.ts';
import { randomAdapter } from './support/random-adapter.ts';

const root = join(import.meta.dirname, '..');
const stories = join(root, '../shared/models/stories260K-f32.gguf');
const canRun = existsSync(join(root, 'dist/lib/index.js')) && existsSync(stories);
if (!canRun) console.log(`adapter tests skipped: dist/ is not built, or ${stories} does not exist`);

const library = canRun ? await importDist<typeof import('../src/index.ts')>('index.js') : null!;
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-adapters-'));
const path = (name: string): string => join(folder, name);
const ASK = { maxTokens: 40, temperature: 0, ignoreEos: true } as const;
const PROMPT = 'Once upon a time there was a little girl named Lily. She had a big red ball';

let base: AdapterBase;
let first: Adapter;
let second: Adapter;

function writeAdapterFile(name: string, adapter: Adapter): string {
  const sink = createMemorySink();
  writeGguf(describeAdapterFile(adapter), sink);
  writeFileSync(path(name), sink.toBytes());
  return path(name);
}

/** The same factors as saved by PEFT: rows of q and k in the order of the checkpoint. */
function writePeft(name: string, { factors }: Adapter): string {
  const modules: Record<string, string> = {
    attn_q: 'self_attn.q_proj',
    attn_k: 'self_attn.k_proj',
    attn_v: 'self_attn.v_proj',
    attn_output: 'self_attn.o_proj',
    ffn_gate: 'mlp.gate_proj',
    ffn_up: 'mlp.up_proj',
    ffn_down: 'mlp.down_proj',
  };
  const header: Record<string, object> = {};
  const parts: Float32Array[] = [];
  let offset = 0;
  const put = (tensor: string, shape: number[], values: Float32Array): void => {
    header[`base_model.model.${tensor}`] = { dtype: 'F32', shape, data_offsets: [offset, offset + values.byteLength] };
    offset += values.byteLength;
    parts.push(values);
  };
  for (const { target, layer, numCols, numRows, rank, a, b } of factors) {
    const module = target === 'output' ? 'lm_head' : `model.layers.${layer}.${modules[target]}`;
    const saved = new Float32Array(b.length);
    const half = base.headDim / 2;
    for (let row = 0; row < numRows; row++) {
      const inHead = row % base.headDim;
      const isTurned = target === 'attn_q' || target === 'attn_k';
      const to = isTurned ? row - inHead + (inHead % 2) * half + Math.floor(inHead / 2) : row;
      saved.set(b.subarray(row * rank, (row + 1) * rank), to * rank);
    }
    put(`${module}.lora_A.weight`, [rank, numCols], a);
    put(`${module}.lora_B.weight`, [numRows, rank], saved);
  }
  const json = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  mkdirSync(path(name));
  const data = parts.map((values) => Buffer.from(values.buffer, values.byteOffset, values.byteLength));
  writeFileSync(join(path(name), 'adapter_model.safetensors'), Buffer.concat([size, json, ...data]));
  const { rank, scale } = factors[0]!;
  const config = { peft_type: 'LORA', r: rank, lora_alpha: rank * scale, bias: 'none' };
  writeFileSync(join(path(name), 'adapter_config.json'), JSON.stringify(config));
  return path(name);
}

beforeAll(async () => {
  if (!canRun) return;
  const bytes = readFileSync(stories);
  base = readShape(openGguf(createMemorySource(bytes)));
  first = await randomAdapter(base, { seed: 1, rank: 4 });
  second = await randomAdapter(base, { seed: 2, rank: 3 });
  writeFileSync(path('merged.gguf'), mergeIntoModel(bytes, [{ adapter: first, scale: 1 }]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const textOf = async (model: Model, adapter?: string): Promise<string> =>
  (await model.generate(PROMPT, { ...ASK, cachePrefix: false, ...(adapter === undefined ? {} : { adapter }) })).text;

describe.skipIf(!canRun)('a real model', () => {
  test.each(['reference', 'wasm', 'native'] as const)(
    '%s kernels: computes the same as merged weights',
    async (kernels) => {
      const merged = await library.loadModel(path('merged.gguf'), { kernels, numThreads: 2 });
      const expected = await textOf(merged);
      await merged.dispose();
      const model = await library.loadModel(stories, { kernels, numThreads: 2 });
      const before = await textOf(model);
      const info = await model.loadAdapter(writeAdapterFile(`${kernels}.gguf`, first), { name: 'story' });
      expect(info).toMatchObject({ name: 'story', contentHash: first.contentHash, rank: 4, affectsKv: true });
      const texts = await Promise.all([textOf(model, 'story'), textOf(model), textOf(model, 'story')]);
      expect(texts).toEqual([expected, before, expected]);
      expect(expected).not.toBe(before);
      expect((await model.stats()).cache.adapterBytes).toBe(info.sizeBytes);
      await model.dispose();
    },
  );

  test('a replaced adapter does not change a running stream, and the next request finds no pages of the old one', async () => {
    const model = await library.loadModel(stories, { numThreads: 2 });
    await model.loadAdapter(second, { name: 'b' });
    const next = await textOf(model, 'b');
    await model.loadAdapter(first, { name: 'a' });
    const old = (await model.generate(PROMPT, { ...ASK, adapter: 'a' })).text;
    let text = '';
    let isReplaced = false;
    for await (const chunk of model.generateStream(PROMPT, { ...ASK, adapter: 'a' })) {
      text += chunk.text;
      if (!isReplaced) await model.loadAdapter(second, { name: 'a' });
      isReplaced = true;
    }
    expect(text).toBe(old);
    const renewed = await model.generate(PROMPT, { ...ASK, adapter: 'a' });
    expect(renewed.text).toBe(next);
    expect(next).not.toBe(old);
    expect(renewed.usage.cachedTokens).toBe(0);
    expect((await model.generate(PROMPT, { ...ASK, adapter: 'a' })).usage.cachedTokens).toBeGreaterThan(0);
    expect(model.adapters().map(({ name, contentHash }) => [name, contentHash])).toEqual([
      ['b', second.contentHash],
      ['a', second.contentHash],
    ]);
    expect((await model.stats()).numAdapters).toBe(2);
    await model.dispose();
  });

  test('reads the same adapter from PEFT, and checks names, tenants and scales', async () => {
    const model = await library.loadModel(stories, { numThreads: 2 });
    const info = await model.loadAdapter(writePeft('peft', first), { name: 'peft' });
    expect(info.contentHash).toBe(first.contentHash);
    await model.loadAdapter(second, { name: 'own', tenant: 'alice' });
    const ask = { ...ASK, cachePrefix: false, maxTokens: 4 };
    await model.generate('a', { ...ask, adapter: 'own', tenant: 'alice' });
    await expect(model.generate('a', { ...ask, adapter: 'own' })).rejects.toMatchObject({
      code: 'not_found',
      message: 'adapter "own" not found (loaded: peft)',
    });
    const half = await model.generate(PROMPT, {
      ...ASK,
      adapter: [
        { name: 'peft', scale: 0.5 },
        { name: 'peft', scale: 0.5 },
      ],
    });
    expect(half.text).toBe(await textOf(model, 'peft'));
    expect((await model.generate(PROMPT, { ...ASK, adapter: { name: 'peft', scale: 0 } })).text).toBe(
      await textOf(model),
    );
    for (const adapter of ['', 'a:b', { name: 'peft', scale: 101 }, Array.from({ length: 5 }, () => 'peft')]) {
      await expect(model.generate('a', { adapter })).rejects.toMatchObject({ code: 'invalid_option' });
    }
    await expect(model.loadAdapter(path('none.gguf'), { name: 'x' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(model.loadAdapter(stories, { name: 'x' })).rejects.toThrow(/is not an adapter/);
    const misfit = await randomAdapter({ ...base, vocabSize: base.vocabSize + 1 }, { seed: 1, targets: ['output'] });
    await expect(model.loadAdapter(misfit, { name: 'x' })).rejects.toThrow(
      /output as a matrix of 513 x 64, the model has 512 x 64/,
    );
    expect([model.unloadAdapter('peft'), model.unloadAdapter('peft')]).toEqual([true, false]);
    await expect(model.generate('a', { adapter: 'peft' })).rejects.toMatchObject({ code: 'not_found' });
    expect((await model.stats()).numAdapters).toBe(1);
    await model.dispose();
  });
});
