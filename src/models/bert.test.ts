import { describe, expect, test } from 'vitest';
import { BERT_SHAPE, buildRandomBert, type RandomBertOptions } from '../../test/support/random-bert.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import { type KernelPackFactory, PAGE_TOKENS } from '../kernels/contract.ts';
import { createNativePackFactory } from '../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { createWasmPackFactory } from '../kernels/wasm/wasm-pack.ts';
import { loadNativeBuilds } from '../platform/node/kernels/native-addon.ts';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
import { loadModel } from './load-model.ts';
import type { LoadedModel } from './types.ts';
import { readVector } from './weight-loader.ts';

const limits = { maxBatchTokens: 64, maxSequences: 4, maxLogitRows: 4, numPages: 16, kvPrecision: 'f32' } as const;
const ids = (length: number, seed: number): number[] => Array.from({ length }, (_, i) => 2 + ((seed + i * 7) % 38));

const load = (factory: KernelPackFactory, options: RandomBertOptions = {}, maxContextTokens?: number) =>
  loadModel(openGguf(createMemorySource(buildRandomBert(options))), factory, {
    limits,
    numThreads: 2,
    ...(maxContextTokens === undefined ? {} : { maxContextTokens }),
  });

/** The hidden states of all rows of whole sequences, on unordered pages. */
async function run(model: LoadedModel, sequences: readonly (readonly number[])[]): Promise<Float32Array[]> {
  const free = Array.from({ length: limits.numPages }, (_, i) => (i * 7) % limits.numPages);
  let firstRow = 0;
  const placed = sequences.map((tokenIds) => {
    const pageIds = free.splice(0, Math.ceil(tokenIds.length / PAGE_TOKENS));
    firstRow += tokenIds.length;
    return { firstRow: firstRow - tokenIds.length, numRows: tokenIds.length, contextTokens: tokenIds.length, pageIds };
  });
  const positions = sequences.flatMap((tokenIds) => [...tokenIds.keys()]);
  const slots = placed.flatMap(({ numRows, pageIds }) =>
    Array.from({ length: numRows }, (_, i) => pageIds[Math.floor(i / PAGE_TOKENS)]! * PAGE_TOKENS + (i % PAGE_TOKENS)),
  );
  const hiddenRows = positions.map((_, row) => row);
  const batch = { tokenIds: sequences.flat(), positions, slots, sequences: placed, logitRows: [], hiddenRows };
  expect(await model.forward(batch)).toHaveLength(0);
  const states = model.hiddenStates();
  return hiddenRows.map((row) => states.slice(row * BERT_SHAPE.dim, (row + 1) * BERT_SHAPE.dim));
}

/** BERT as in its paper, in double precision, sharing only the file with our code. */
function encodePlainly(bytes: Uint8Array, tokenIds: readonly number[]): number[][] {
  const gguf = openGguf(createMemorySource(bytes));
  const { dim, numHeads, ffn } = BERT_SHAPE;
  const headDim = dim / numHeads;
  const read = (name: string): Float32Array => {
    const tensor = gguf.tensor(name);
    if (tensor.dims.length === 1) return readVector(gguf, name, tensor.dims[0]!);
    const data = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(tensor, data);
    return new Float32Array(data.buffer);
  };
  const rowOf = (name: string, row: number): number[] => [...read(name).subarray(row * dim, (row + 1) * dim)];
  const module = (name: string, x: readonly number[], numRows: number): number[] => {
    const [weight, bias] = [read(`${name}.weight`), read(`${name}.bias`)];
    return Array.from({ length: numRows }, (_, r) =>
      x.reduce((sum, value, c) => sum + value * weight[r * x.length + c]!, bias[r]!),
    );
  };
  const normalize = (name: string, x: readonly number[]): number[] => {
    const [weight, bias] = [read(`${name}.weight`), read(`${name}.bias`)];
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    return x.map((value, i) => ((value - mean) / Math.sqrt(variance + 1e-12)) * weight[i]! + bias[i]!);
  };
  const add = (x: readonly number[], y: readonly number[]): number[] => x.map((value, i) => value + y[i]!);
  let rows = tokenIds.map((id, position) =>
    normalize(
      'token_embd_norm',
      add(add(rowOf('token_embd.weight', id), rowOf('token_types.weight', 0)), rowOf('position_embd.weight', position)),
    ),
  );
  for (let layer = 0; gguf.tensors.has(`blk.${layer}.attn_q.weight`); layer++) {
    const block = `blk.${layer}`;
    const [q, k, v] = ['attn_q', 'attn_k', 'attn_v'].map((name) => rows.map((x) => module(`${block}.${name}`, x, dim)));
    rows = rows.map((x, t) => {
      const attended = Array.from({ length: dim }, (_, d) => {
        const first = Math.floor(d / headDim) * headDim;
        const scores = k!.map((key) => {
          let dot = 0;
          for (let i = first; i < first + headDim; i++) dot += q![t]![i]! * key[i]!;
          return Math.exp(dot / Math.sqrt(headDim));
        });
        const total = scores.reduce((sum, score) => sum + score, 0);
        return scores.reduce((sum, score, other) => sum + (score / total) * v![other]![d]!, 0);
      });
      const middle = normalize(`${block}.attn_output_norm`, add(x, module(`${block}.attn_output`, attended, dim)));
      const up = module(`${block}.ffn_up`, middle, ffn).map((value) => value * normalDistribution(value));
      return normalize(`${block}.layer_output_norm`, add(middle, module(`${block}.ffn_down`, up, dim)));
    });
  }
  return rows;
}

/** By Simpson's rule over the density. */
function normalDistribution(x: number): number {
  const width = Math.min(12, Math.abs(x)) / 400;
  let sum = 0;
  for (let i = 0; i <= 400; i++) {
    sum += (i === 0 || i === 400 ? 1 : i % 2 === 1 ? 4 : 2) * Math.exp(-((i * width) ** 2) / 2);
  }
  return 0.5 + (Math.sign(x) * sum * width) / 3 / Math.sqrt(2 * Math.PI);
}

const bytes = buildRandomBert();
const expected = encodePlainly(bytes, ids(21, 1));
const factories = [
  createReferencePackFactory(),
  createWasmPackFactory(createNodeWasmPlatform()),
  ...loadNativeBuilds()
    .slice(0, 1)
    .map((build) => createNativePackFactory(build)),
];

describe.each(factories)('BERT on $name', (factory) => {
  test('matches the paper token by token', async () => {
    const model = await load(factory);
    const states = await run(model, [ids(21, 1)]);
    for (const [row, state] of states.entries()) {
      for (const [i, value] of state.entries()) {
        expect(Math.abs(value - expected[row]![i]!), `row ${row}, value ${i}`).toBeLessThan(2e-5);
      }
    }
    await model.dispose();
  });

  test('gives the same bits batched or alone, on any pages', async () => {
    const model = await load(factory, { type: 'Q8_0' });
    const sequences = [ids(21, 1), ids(1, 2), ids(34, 3)];
    const batched = await run(model, sequences);
    const alone: Float32Array[] = [];
    for (const sequence of sequences) alone.push(...(await run(model, [sequence])));
    expect(batched).toEqual(alone);
    await model.dispose();
  });
});

test('every token affects every other, and every position counts', async () => {
  const model = await load(createReferencePackFactory());
  const tokenIds = ids(6, 1);
  const states = await run(model, [tokenIds]);
  for (let i = 0; i < 6; i++) {
    const changed = await run(model, [tokenIds.with(i, tokenIds[i] === 9 ? 10 : 9)]);
    for (const [row, state] of changed.entries()) expect(state, `row ${row}, token ${i}`).not.toEqual(states[row]);
  }
  const swapped = await run(model, [[tokenIds[1]!, tokenIds[0]!, ...tokenIds.slice(2)]]);
  expect(swapped[5]).not.toEqual(states[5]);
});

test('rejects partial sequences and requests for logits before computing', async () => {
  const model = await load(createReferencePackFactory());
  const step = { tokenIds: [5], positions: [0], slots: [0], logitRows: [] };
  const sequence = { firstRow: 0, numRows: 1, contextTokens: 1, pageIds: [0] };
  for (const batch of [
    { ...step, sequences: [{ ...sequence, contextTokens: 2 }] },
    { ...step, sequences: [sequence], logitRows: [0] },
    { ...step, sequences: [sequence], hiddenRows: [1] },
    { ...step, sequences: [sequence], hiddenRows: Array.from({ length: 65 }, () => 0) },
    { ...step, sequences: [sequence], positions: [64] },
  ]) {
    await expect(model.forward(batch)).rejects.toMatchObject({ code: 'internal' });
  }
  expect(model.shape).toMatchObject({ isCausal: false, contextLength: 64 });
});

test.each<[string, RandomBertOptions, string, RegExp]>([
  [
    'no epsilon',
    { metadata: [{ key: 'bert.attention.layer_norm_epsilon', value: null }] },
    'invalid_model_file',
    /layer_norm_epsilon/,
  ],
  [
    'an encoder with causal attention',
    { metadata: [{ key: 'bert.attention.causal', type: 'bool', value: true }] },
    'unsupported',
    /"bert\.attention\.causal" is true, bert requires false/,
  ],
  [
    'a norm without a bias',
    { omit: (name) => name === 'blk.1.layer_output_norm.bias' },
    'invalid_model_file',
    /blk\.1\.layer_output_norm\.bias/,
  ],
  ['no positions', { omit: (name) => name === 'position_embd.weight' }, 'invalid_model_file', /position_embd\.weight/],
  [
    'fewer positions than declared',
    { metadata: [{ key: 'bert.context_length', type: 'u32', value: 65 }] },
    'invalid_model_file',
    /\[64, 64\].*\[64, 65\]/,
  ],
])('rejects %s by name', async (_what, options, code, message) => {
  await expect(load(createReferencePackFactory(), options)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
});

test('rejects a context longer than the position table and names both numbers', async () => {
  await expect(load(createReferencePackFactory(), {}, 65)).rejects.toMatchObject({
    code: 'invalid_option',
    data: { maxContextTokens: 65, contextLength: 64 },
  });
});
