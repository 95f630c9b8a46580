import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { type MetadataEntry, openGguf } from '../gguf/index.ts';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from '../../test/support/random-model.ts';
import { loadBytes, loadRandom, runParts } from '../../test/support/run-model.ts';
import { topOfRow } from '../../test/support/top-logits.ts';
import { architectures, isDecoder } from './registry.ts';
import type { LoadedModel } from './types.ts';

const names = [...architectures.keys()].filter(isDecoder) as RandomArchitecture[];
const ids = (length: number, seed: number): number[] => Array.from({ length }, (_, i) => 3 + ((seed + i * 37) % 300));
const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });

const load = (options: Partial<RandomModelOptions>): Promise<LoadedModel> =>
  loadRandom({ architecture: 'llama', type: 'F32', seed: 5, shape: { numLayers: 2 }, ...options });

/** Logits after the last token; reuses the pages each time. */
async function lastOf(model: LoadedModel, tokenIds: readonly number[]): Promise<Float32Array> {
  return (await runParts(model, [{ tokenIds, start: 0, pageIds: [4, 2] }])).at(-1)!;
}

const lastLogits = async (options: Partial<RandomModelOptions>): Promise<Float32Array> =>
  lastOf(await load(options), ids(20, 1));

describe.each(names)('%s', (architecture) => {
  test('gives the same bits chunked or whole, batched or alone, on any pages', async () => {
    const model = await load({ architecture, type: 'Q8_0' });
    const [first, second] = [ids(21, 1), ids(5, 2)];
    const whole = await runParts(model, [{ tokenIds: first, start: 0, pageIds: [7, 3] }]);
    const other = await runParts(model, [{ tokenIds: second, start: 0, pageIds: [5] }]);
    const one = { pageIds: [0, 9] };
    const two = { pageIds: [1] };
    const mixed = [
      await runParts(model, [
        { ...two, tokenIds: second.slice(0, 4), start: 0 },
        { ...one, tokenIds: first.slice(0, 13), start: 0 },
      ]),
      await runParts(model, [
        { ...one, tokenIds: first.slice(13), start: 13 },
        { ...two, tokenIds: second.slice(4), start: 4 },
      ]),
    ];
    expect([...mixed[0]!.slice(4), ...mixed[1]!.slice(0, 8)]).toEqual(whole);
    expect([...mixed[0]!.slice(0, 4), mixed[1]![8]]).toEqual(other);
    await model.dispose();
  });

  test('every token and every position of the context counts', async () => {
    const model = await load({ architecture });
    const tokenIds = ids(6, 1);
    const last = await lastOf(model, tokenIds);
    for (let i = 0; i < 6; i++) expect(await lastOf(model, tokenIds.with(i, 290))).not.toEqual(last);
    expect(await lastOf(model, [tokenIds[1]!, tokenIds[0]!, ...tokenIds.slice(2)])).not.toEqual(last);
    expect(await lastOf(model, tokenIds)).toEqual(last);
  });
});

test('returns the hidden states behind the logits, for the requested rows in their order', async () => {
  // The output matrix is the embedding table, so that the test can compute logits.
  const file = buildRandomModel({ architecture: 'qwen2', type: 'F32', seed: 5 });
  const model = await loadBytes(file);
  const tokenIds = ids(4, 1);
  const step = {
    tokenIds,
    positions: [0, 1, 2, 3],
    slots: [0, 1, 2, 3],
    sequences: [{ firstRow: 0, numRows: 4, contextTokens: 4, pageIds: [0] }],
  };
  const { vocabSize, embeddingDim: dim } = model.shape;
  const logits = await model.forward({ ...step, logitRows: [3, 1], hiddenRows: [1, 0, 3] });
  const hidden = model.hiddenStates();
  const gguf = openGguf(createMemorySource(file));
  const bytes = new Uint8Array(vocabSize * dim * 4);
  gguf.readTensor(gguf.tensor('token_embd.weight'), bytes);
  const weights = new Float32Array(bytes.buffer);
  expect(hidden).toHaveLength(3 * dim);
  for (const [logitRow, hiddenRow] of [
    [0, 2],
    [1, 0],
  ] as const) {
    for (let id = 0; id < vocabSize; id++) {
      let expected = 0;
      for (let i = 0; i < dim; i++) expected += weights[id * dim + i]! * hidden[hiddenRow * dim + i]!;
      expect(Math.abs(logits[logitRow * vocabSize + id]! - expected)).toBeLessThan(1e-4);
    }
  }
  const all = hidden.slice();
  await model.forward({ ...step, logitRows: [], hiddenRows: [0] });
  expect(model.hiddenStates()).toEqual(all.slice(dim, 2 * dim));
  await model.forward({ ...step, logitRows: [3] });
  expect(model.hiddenStates()).toHaveLength(0);
});

test('returns the top logits of the same rows, only on request', async () => {
  const model = await load({});
  const tokenIds = ids(4, 1);
  const step = {
    tokenIds,
    positions: [0, 1, 2, 3],
    slots: [0, 1, 2, 3],
    sequences: [{ firstRow: 0, numRows: 4, contextTokens: 4, pageIds: [0] }],
    logitRows: [3, 1],
  };
  const { vocabSize } = model.shape;
  const logits = await model.forward({ ...step, numTop: 5 });
  for (const index of [0, 1]) {
    const expected = topOfRow(logits.slice(index * vocabSize, (index + 1) * vocabSize), 5);
    expect(model.topOf(index)).toEqual({ ...expected, sumExp: Math.fround(expected.sumExp) });
  }
  expect(() => model.topOf(2)).toThrowError(/row 2/);
  for (const other of [step, { ...step, logitRows: [], numTop: 5 }]) {
    await model.forward(other);
    expect(() => model.topOf(0)).toThrowError(/row 0/);
    await model.forward({ ...step, numTop: 5 });
  }
  for (const numTop of [-1, 1.5, vocabSize + 1, 257]) {
    await expect(model.forward({ ...step, numTop })).rejects.toMatchObject({ code: 'internal' });
  }
  await model.dispose();
});

test('returns logits only for the requested rows, in their order', async () => {
  const model = await load({ architecture: 'qwen2' });
  const tokenIds = ids(4, 1);
  const all = await runParts(model, [{ tokenIds, start: 0, pageIds: [0] }]);
  const step = {
    tokenIds,
    positions: [0, 1, 2, 3],
    slots: [0, 1, 2, 3],
    sequences: [{ firstRow: 0, numRows: 4, contextTokens: 4, pageIds: [0] }],
  };
  expect([...(await model.forward({ ...step, logitRows: [3, 1] }))]).toEqual([...all[3]!, ...all[1]!]);
  expect(await model.forward({ ...step, logitRows: [] })).toHaveLength(0);
});

test('a window hides earlier tokens on the layers that have one', async () => {
  // One layer: with more, the view of a windowed layer reaches further through the layers above.
  const shape = { numLayers: 1 };
  for (const architecture of ['llama', 'phi3', 'gemma2', 'gemma3', 'olmo2', 'cohere2'] as const) {
    const metadata = [u32(`${architecture}.attention.sliding_window`, 8)];
    const model = await load({ architecture, shape, metadata });
    const tokenIds = ids(20, 1);
    const last = await lastOf(model, tokenIds);
    expect(await lastOf(model, tokenIds.with(11, 290)), architecture).toEqual(last);
    expect(await lastOf(model, tokenIds.with(12, 290)), architecture).not.toEqual(last);
  }
});

test('Gemma has a window in every layer except the last of each group, or in those the file lists', async () => {
  const tokenIds = ids(20, 1);
  const far = tokenIds.with(0, 290);
  const isGlobal = async (options: Partial<RandomModelOptions>): Promise<boolean> => {
    const model = await load(options);
    const [a, b] = [await lastOf(model, tokenIds), await lastOf(model, far)];
    return a.some((value, i) => value !== b[i]);
  };
  // Window 2: five windowed layers reach back five tokens, far from the first of twenty.
  const gemma3 = (numLayers: number, ...metadata: MetadataEntry[]): Partial<RandomModelOptions> => ({
    architecture: 'gemma3',
    shape: { numLayers },
    metadata: [u32('gemma3.attention.sliding_window', 2), ...metadata],
  });
  expect(await isGlobal(gemma3(5))).toBe(false);
  expect(await isGlobal(gemma3(6))).toBe(true);
  const pattern = 'gemma3.attention.sliding_window_pattern';
  expect(await isGlobal(gemma3(3, u32(pattern, 3)))).toBe(true);
  expect(await isGlobal(gemma3(2, { key: pattern, type: 'array<bool>', value: [true, true] }))).toBe(false);
  expect(await isGlobal(gemma3(2, { key: pattern, type: 'array<bool>', value: [false, true] }))).toBe(true);
  const gemma2 = { architecture: 'gemma2', metadata: [u32('gemma2.attention.sliding_window', 2)] } as const;
  expect(await isGlobal({ ...gemma2, shape: { numLayers: 1 } })).toBe(false);
  expect(await isGlobal({ ...gemma2, shape: { numLayers: 2 } })).toBe(true);
});

test('factors of embeddings, scores, block outputs and logits change the result', async () => {
  const options = { architecture: 'granite' as const };
  const plain = await lastLogits(options);
  for (const key of ['embedding_scale', 'residual_scale', 'attention.scale']) {
    expect(await lastLogits({ ...options, metadata: [f32(`granite.${key}`, 0.9)] }), key).not.toEqual(plain);
  }
  const halved = await lastLogits({ ...options, metadata: [f32('granite.logit_scale', 1)] });
  expect(halved).toEqual(plain.map((value) => value / 2));
  for (const [architecture, key] of [
    ['command-r', 'command-r.logit_scale'],
    ['cohere2', 'cohere2.logit_scale'],
  ] as const) {
    const [once, twice] = [
      await lastLogits({ architecture, metadata: [f32(key, 1)] }),
      await lastLogits({ architecture, metadata: [f32(key, 2)] }),
    ];
    expect(twice, architecture).toEqual(once.map((value) => value * 2));
  }
});

test('layers without rotation do not see positions', async () => {
  // One layer whose tokens all look alike to attention: order cannot matter, except through rotations.
  const seesOrder = async (options: Partial<RandomModelOptions>): Promise<boolean> => {
    const model = await load({ shape: { numLayers: 1 }, ...options });
    const [a, b] = [await lastOf(model, [5, 6, 7, 8]), await lastOf(model, [6, 5, 7, 8])];
    return a.some((value, i) => Math.abs(value - b[i]!) > 1e-3);
  };
  const finetuned = { key: 'granite.rope.scaling.finetuned', type: 'bool', value: false } as const;
  expect(await seesOrder({ architecture: 'granite' })).toBe(true);
  expect(await seesOrder({ architecture: 'granite', metadata: [finetuned] })).toBe(false);
  const pattern = (isWindowed: boolean): MetadataEntry => {
    return { key: 'cohere2.attention.sliding_window_pattern', type: 'array<bool>', value: [isWindowed] };
  };
  expect(await seesOrder({ architecture: 'cohere2', metadata: [pattern(true)] })).toBe(true);
  expect(await seesOrder({ architecture: 'cohere2', metadata: [pattern(false)] })).toBe(false);
  expect(await seesOrder({ architecture: 'smollm3' })).toBe(true);
});

test('soft caps limit scores and logits', async () => {
  const options = { architecture: 'gemma2' as const };
  const capped = await lastLogits({ ...options, metadata: [f32('gemma2.final_logit_softcapping', 0.5)] });
  expect(Math.max(...capped.map(Math.abs))).toBeLessThanOrEqual(0.5);
  const free = await lastLogits({ ...options, metadata: [f32('gemma2.final_logit_softcapping', 0)] });
  expect(Math.max(...free.map(Math.abs))).toBeGreaterThan(1);
  const lower = await lastLogits({ ...options, metadata: [f32('gemma2.attn_logit_softcapping', 0.1)] });
  expect(lower).not.toEqual(await lastLogits(options));
});

test('reads weights tied or untied, with or without biases', async () => {
  const plain = await lastLogits({});
  const zeroBias = { 'blk.0.attn_output.bias': new Float32Array(96), 'blk.1.ffn_down.bias': new Float32Array(96) };
  expect(await lastLogits({ vectors: zeroBias })).toEqual(plain);
  for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down']) {
    const length = { attn_k: 32, attn_v: 32, ffn_gate: 160, ffn_up: 160 }[name] ?? 96;
    const vectors = { [`blk.1.${name}.bias`]: new Float32Array(length).fill(0.5).map((value, i) => value * (i % 3)) };
    expect(await lastLogits({ vectors }), name).not.toEqual(plain);
  }
  expect(await lastLogits({ omit: (name) => name === 'output.weight' })).not.toEqual(plain);
});

test('uses the rope factors of long contexts if sequences can be that long', async () => {
  const loadFor = async (maxContextTokens: number): Promise<Float32Array> => {
    const shape = { numLayers: 1 };
    const model = await loadRandom({ architecture: 'phi3', type: 'F32', seed: 5, shape }, { maxContextTokens });
    return lastOf(model, ids(20, 1));
  };
  expect(await loadFor(128)).toEqual(await loadFor(64));
  expect(await loadFor(129)).not.toEqual(await loadFor(128));
});
