import { existsSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { buildRandomModel, type RandomModelOptions } from '../../../test/support/random-model.ts';
import { runParts } from '../../../test/support/run-model.ts';
import { ADAPTER_TARGETS, type AdapterTarget } from '../../adapters/types.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { createRandom } from '../../core/random.ts';
import { openGguf } from '../../gguf/index.ts';
import { createReferencePackFactory } from '../../kernels/reference/reference-pack.ts';
import { createKernelFactory } from '../../platform/node/kernels/kernel-factory.ts';
import { joinFactors } from './join-factors.contract.ts';
import { toFactors } from './parameter-layout.ts';
import { loadModel } from '../../models/index.ts';
import { createTrainingModel, type TrainingModelOptions } from './training-model.ts';
import type { TrainingExample, TrainingModel } from './types.ts';

const tiny: RandomModelOptions = {
  architecture: 'llama',
  type: 'F32',
  seed: 3,
  shape: { numLayers: 3, embeddingDim: 24, numHeads: 4, numKvHeads: 2, headDim: 6, feedForwardDim: 20, vocabSize: 260 },
};
const example: TrainingExample = { tokenIds: [5, 17, 80, 33, 200, 9, 41, 7], numPromptTokens: 3 };

const opened: TrainingModel[] = [];
afterEach(async () => {
  for (const model of opened.splice(0)) await model.dispose();
});

async function open(
  model: Partial<RandomModelOptions> = {},
  options: TrainingModelOptions = {},
): Promise<TrainingModel> {
  const gguf = openGguf(createMemorySource(buildRandomModel({ ...tiny, ...model })));
  const made = await createTrainingModel(gguf, createReferencePackFactory(), { rank: 3, maxTokens: 32, ...options });
  opened.push(made);
  return made;
}

/** Both factors away from zero, so that every path carries a gradient. */
function someParameters(length: number, seed: number): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length }, () => (random.next() - 0.5) * 0.3);
}

/** Directional derivatives along random directions of each matrix's factors: analytic beside central differences. */
async function compareSlopes(model: TrainingModel, of: TrainingExample): Promise<{ what: string; off: number }[]> {
  const { layout } = model;
  const parameters = someParameters(layout.numParameters, 11);
  const gradient = new Float32Array(layout.numParameters);
  await model.addGradient(parameters, of, gradient);
  const random = createRandom(5);
  const found = [];
  for (const { target, layer, aStart, bStart, numRows } of layout.matrices) {
    for (const [factor, start, end] of [
      ['A', aStart, bStart],
      ['B', bStart, bStart + numRows * layout.rank],
    ] as const) {
      const direction = Float64Array.from({ length: end - start }, () => (random.next() < 0.5 ? -1 : 1));
      const analytic = direction.reduce((sum, sign, i) => sum + sign * gradient[start + i]!, 0);
      const size = Math.sqrt(gradient.subarray(start, end).reduce((sum, value) => sum + value * value, 0));
      // Steps small against the curvature, large against the rounding of f32 activations.
      const step = 0.01 / Math.sqrt(end - start);
      const lossAt = async (sign: number): Promise<number> => {
        const moved = parameters.slice();
        for (let i = start; i < end; i++) moved[i]! += sign * step * direction[i - start]!;
        return (await model.loss(moved, of)).loss * Math.abs(of.weight ?? 1);
      };
      const numeric = ((await lossAt(1)) - (await lossAt(-1))) / (2 * step);
      expect(size, `${target} ${layer} ${factor} has a gradient`).toBeGreaterThan(1e-7);
      found.push({ what: `${target} ${layer} ${factor}`, off: Math.abs(analytic - numeric) / size });
    }
  }
  return found;
}

async function expectSlopes(model: TrainingModel, of: TrainingExample = example): Promise<void> {
  for (const { what, off } of await compareSlopes(model, of)) expect(off, what).toBeLessThan(0.02);
}

describe('[LT1] gradients are the slopes of the loss', () => {
  test.each(['llama', 'qwen2', 'qwen3', 'phi3'] as const)('%s: every target of two layers', async (architecture) => {
    const hasWideHeads = architecture === 'qwen3' || architecture === 'phi3';
    const dims = hasWideHeads ? { headDim: 8, embeddingDim: 32 } : {};
    const shape = { ...tiny.shape, ...dims };
    await expectSlopes(await open({ architecture, shape }, { numLayers: 2, targets: ADAPTER_TARGETS }));
  });

  test('one key/value head for all, and one for each', async () => {
    await expectSlopes(await open({ shape: { ...tiny.shape, numKvHeads: 1 } }));
    await expectSlopes(await open({ shape: { ...tiny.shape, numKvHeads: 4 } }));
  });

  test('a window shorter than the text', async () => {
    await expectSlopes(await open({ metadata: [{ key: 'llama.attention.sliding_window', type: 'u32', value: 3 }] }));
  });

  test.each(ADAPTER_TARGETS)('%s alone, in the last layer only', async (target: AdapterTarget) => {
    await expectSlopes(await open({}, { targets: [target], numLayers: 1 }));
  });

  test('a rejected answer', async () => {
    await expectSlopes(await open({}, { targets: ADAPTER_TARGETS }), { ...example, weight: -0.5 });
  });

  test('a text over several pages, with more answers than rows of logits at a time', async () => {
    const tokenIds = Array.from({ length: 90 }, (_, i) => 3 + ((i * 37) % 250));
    await expectSlopes(await open({}, { maxTokens: 128 }), { tokenIds, numPromptTokens: 2 });
  });

  test('a vocabulary in several parts', async () => {
    await expectSlopes(
      await open({ shape: { ...tiny.shape, vocabSize: 8200 } }, { targets: ['attn_q', 'output'], numLayers: 1 }),
      { tokenIds: [5, 8195, 80, 8199, 40], numPromptTokens: 1 },
    );
  });
});

test('[LT2] the loss equals that of inference on the same tokens', async () => {
  for (const architecture of ['llama', 'qwen2', 'qwen3', 'phi3'] as const) {
    const bytes = buildRandomModel({ ...tiny, shape: {}, architecture, type: 'Q8_0' });
    const served = await loadModel(openGguf(createMemorySource(bytes)), createReferencePackFactory(), {
      limits: { maxBatchTokens: 32, maxSequences: 1, maxLogitRows: 32, numPages: 4, kvPrecision: 'f32' },
    });
    const rows = await runParts(served, [{ tokenIds: Array.from(example.tokenIds), start: 0, pageIds: [0] }]);
    const model = await createTrainingModel(openGguf(createMemorySource(bytes)), createReferencePackFactory(), {
      maxContextTokens: 64, // as many as the pages above hold: it decides how phi3 rotates
    });
    opened.push(model);
    let expected = 0;
    for (let i = 3; i < 8; i++) expected -= logSoftmax(rows[i - 1]!, example.tokenIds[i]!) / 5;
    const { loss, numTokens } = await model.loss(null, example);
    expect(numTokens).toBe(5);
    expect(loss).toBeCloseTo(expected, 5);
    await served.dispose();
  }
});

test.each(['stories260K-f32', 'stories15M-q8_0'])('[LT2] the loss equals that of inference with %s', async (name) => {
  const path = new URL(`../../../../shared/models/${name}.gguf`, import.meta.url);
  if (!existsSync(path)) return console.log(`skipped: ${name}.gguf is not in ../shared/models`);
  const bytes = new Uint8Array(readFileSync(path));
  const tokenIds = [1, 403, 407, 261, 378, 31, 285, 262];
  const limits = { maxBatchTokens: 8, maxSequences: 1, maxLogitRows: 8, numPages: 1, kvPrecision: 'f32' as const };
  const served = await loadModel(openGguf(createMemorySource(bytes)), createReferencePackFactory(), { limits });
  const rows = await runParts(served, [{ tokenIds, start: 0, pageIds: [0] }]);
  const model = await createTrainingModel(openGguf(createMemorySource(bytes)), createReferencePackFactory(), {
    targets: ['output'],
  });
  opened.push(model);
  let expected = 0;
  for (let i = 2; i < 8; i++) expected -= logSoftmax(rows[i - 1]!, tokenIds[i]!) / 6;
  expect((await model.loss(null, { tokenIds, numPromptTokens: 2 })).loss).toBeCloseTo(expected, 5);
  await served.dispose();
});

test('[LT6] the fastest kernels match the gradients of the reference kernels', async () => {
  const bytes = buildRandomModel({ ...tiny, shape: {}, type: 'Q8_0' });
  const fast = await createKernelFactory('auto', { numThreads: 2, types: ['F32', 'F16', 'Q8_0'], warn: () => {} });
  const gradients = [];
  for (const factory of [createReferencePackFactory(), fast]) {
    const model = await createTrainingModel(openGguf(createMemorySource(bytes)), factory, { numThreads: 2 });
    opened.push(model);
    const gradient = new Float32Array(model.layout.numParameters);
    await model.addGradient(someParameters(gradient.length, 11), example, gradient);
    gradients.push(gradient);
  }
  const [reference, other] = gradients as [Float32Array, Float32Array];
  const norm = (of: Float32Array): number => Math.sqrt(of.reduce((sum, value) => sum + value * value, 0));
  // Activations are rounded to bytes beside Q8_0: one that falls to the other side is a few thousandths.
  expect(norm(reference.map((value, i) => value - other[i]!)) / norm(reference)).toBeLessThan(0.01);
});

test('[LT7] squared gradients of sampled labels average to the Fisher information', async () => {
  const model = await open({ shape: { ...tiny.shape, numLayers: 1 } }, { targets: ['output'], rank: 1 });
  const parameters = someParameters(model.layout.numParameters, 2);
  const { bStart } = model.layout.matrices[0]!;
  const gradientOf = async (example: TrainingExample, sampleLabels: ReturnType<typeof createRandom> | null = null) => {
    const gradient = new Float32Array(parameters.length);
    const { loss } = await model.addGradient(parameters, example, gradient, { sampleLabels });
    return { gradient, p: Math.exp(-loss) };
  };
  // With rank 1, B's gradient at token j is u · (p(j) − [j is the label]), and its information u² · p(j) · (1 − p(j)).
  const contexts = [
    [5, 17],
    [5, 17, 80],
  ];
  const informationOf = async (id: number): Promise<number> => {
    let sum = 0;
    for (const context of contexts) {
      const { gradient, p } = await gradientOf({ tokenIds: [...context, id], numPromptTokens: context.length });
      sum += (gradient[bStart + id]! ** 2 * p) / (1 - p);
    }
    return sum / contexts.length;
  };
  const information: [number, number][] = [];
  for (let id = 0; id < 260; id++) information.push([id, await informationOf(id)]);
  const random = createRandom(8);
  const squares = new Float64Array(260);
  const numDraws = 2000;
  for (let i = 0; i < numDraws; i++) {
    const { gradient } = await gradientOf({ tokenIds: [5, 17, 80, 33], numPromptTokens: 2 }, random);
    for (let id = 0; id < 260; id++) squares[id]! += gradient[bStart + id]! ** 2 / numDraws;
  }
  const most = information.sort((a, b) => b[1] - a[1]).slice(0, 4);
  for (const [id, expected] of most) expect(Math.abs(squares[id]! / expected - 1), `token ${id}`).toBeLessThan(0.25);
  const total = most.reduce((sum, [id]) => sum + squares[id]!, 0) / most.reduce((sum, [, value]) => sum + value, 0);
  expect(Math.abs(total - 1)).toBeLessThan(0.1);
});

test('[LT8] refuses untrainable architectures, too small memory limits and concurrent examples', async () => {
  await expect(open({ architecture: 'gemma2', shape: {} })).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining('"gemma2"'),
  });
  await expect(open({}, { memoryLimitBytes: 1000 })).rejects.toMatchObject({
    code: 'out_of_memory',
    data: expect.objectContaining({ limitBytes: 1000 }),
  });
  await expect(open({}, { targets: ['lm_head'] as never })).rejects.toMatchObject({ code: 'invalid_option' });
  await expect(open({}, { ranks: 2 } as object)).rejects.toMatchObject({ code: 'invalid_option' });
  const model = await open();
  const first = model.loss(null, example);
  await expect(model.loss(null, example)).rejects.toMatchObject({ code: 'conflict' });
  const alone = (await first).loss;
  expect((await model.loss(null, example)).loss).toBe(alone);
});

test('[LT9] splits parameters into the factors of an adapter in its canonical order', async () => {
  const model = await open({}, { targets: ['output', 'attn_v', 'ffn_down'], numLayers: 2 });
  const parameters = someParameters(model.layout.numParameters, 1);
  const factors = toFactors(model.layout, parameters);
  expect(factors.map(({ target, layer }) => `${target} ${layer}`)).toEqual([
    'output -1',
    'attn_v 1',
    'ffn_down 1',
    'attn_v 2',
    'ffn_down 2',
  ]);
  expect(factors[1]).toMatchObject({ numRows: 12, numCols: 24, rank: 3, scale: 2 });
  expect(joinFactors(factors)).toEqual(parameters);
});

function logSoftmax(logits: Float32Array, id: number): number {
  const max = logits.reduce((most, value) => Math.max(most, value));
  return logits[id]! - max - Math.log(logits.reduce((sum, value) => sum + Math.exp(value - max), 0));
}
