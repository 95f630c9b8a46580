import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { openGguf } from '../../gguf/index.ts';
import { createWasmPackFactory } from '../../kernels/wasm/wasm-pack.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { initialParameters } from './parameter-layout.ts';
import { createTrainingModel } from './training-model.ts';
import { trainLora } from './train-lora.ts';
import type { TrainingExample, TrainingModel } from './types.ts';

let model: TrainingModel;
beforeAll(async () => {
  const bytes = buildRandomModel({
    architecture: 'llama',
    type: 'F32',
    seed: 3,
    shape: {
      numLayers: 2,
      embeddingDim: 24,
      numHeads: 6,
      numKvHeads: 2,
      headDim: 4,
      feedForwardDim: 20,
      vocabSize: 260,
    },
  });
  const gguf = openGguf(createMemorySource(bytes));
  model = await createTrainingModel(gguf, createWasmPackFactory(createNodeWasmPlatform(['simd128'])), {
    rank: 2,
    maxTokens: 16,
  });
});
afterAll(() => model.dispose());

const examples: TrainingExample[] = Array.from({ length: 6 }, (_, i) => ({
  tokenIds: [5 + i, 17, 80, 33 + i, 60],
  numPromptTokens: 2,
}));
const rate = { learningRate: 0.02, batchSize: 2 };

async function meanLoss(parameters: Float32Array | null, of = examples): Promise<number> {
  let sum = 0;
  for (const example of of) sum += (await model.loss(parameters, example)).loss;
  return sum / of.length;
}

describe('[LT3] training', () => {
  test('lowers the loss of accepted answers; without a step nothing changes', async () => {
    const before = await meanLoss(null);
    const { parameters: untouched } = await trainLora(model, examples, { maxSteps: 0 });
    expect(await meanLoss(untouched)).toBe(before);
    const { parameters, losses } = await trainLora(model, examples, { ...rate, numEpochs: 8 });
    expect(losses).toHaveLength(24);
    expect(await meanLoss(parameters)).toBeLessThan(before * 0.5);
  });

  test('makes rejected answers less likely', async () => {
    const rejected = examples.map((example) => ({ ...example, weight: -1 }));
    const { parameters: liked } = await trainLora(model, examples, { ...rate, numEpochs: 8 });
    const { parameters } = await trainLora(model, rejected, { ...rate, numEpochs: 8, parameters: liked });
    expect(await meanLoss(parameters)).toBeGreaterThan((await meanLoss(liked)) + 1);
    expect(await meanLoss(parameters, rejected)).toBeLessThan(await meanLoss(liked, rejected));
  });

  test('learns nothing from examples of weight 0', async () => {
    const silent = examples.map((example) => ({ ...example, weight: 0 }));
    const { parameters } = await trainLora(model, silent, rate);
    expect(parameters).toEqual(initialParameters(model.layout, 1));
  });
});

describe('[LT4] a run', () => {
  test('is deterministic for a seed', async () => {
    const run = (seed: number) => trainLora(model, examples, { ...rate, seed });
    const first = await run(4);
    expect((await run(4)).parameters).toEqual(first.parameters);
    expect((await run(5)).parameters).not.toEqual(first.parameters);
  });

  test('continues to the same bits after any step', async () => {
    const whole = await trainLora(model, examples, { ...rate, numEpochs: 2 });
    expect(whole.stoppedBy).toBe('end');
    const half = await trainLora(model, examples, { ...rate, numEpochs: 2, maxSteps: 4 });
    expect(half.stoppedBy).toBe('steps');
    const state = structuredClone(half.state);
    const rest = await trainLora(model, examples, { ...rate, numEpochs: 2, state });
    expect(rest.losses).toHaveLength(2);
    expect(rest.parameters).toEqual(whole.parameters);
  });

  test('stops by signal and by time after whole steps', async () => {
    const controller = new AbortController();
    const onStep = () => controller.abort();
    const aborted = await trainLora(model, examples, { ...rate, signal: controller.signal, onStep });
    expect([aborted.stoppedBy, aborted.state.numSteps]).toEqual(['signal', 1]);
    const late = await trainLora(model, examples, { ...rate, timeLimitMs: 0 });
    expect([late.stoppedBy, late.state.numSteps]).toEqual(['time', 0]);
    const timer = new AbortController();
    setTimeout(() => timer.abort(), 0);
    const long = await trainLora(model, examples, { ...rate, numEpochs: 1e6, signal: timer.signal });
    expect(long.stoppedBy).toBe('signal');
  });

  test('throws on a gradient that is not finite and leaves its input unchanged', async () => {
    const parameters = initialParameters(model.layout, 1);
    const kept = parameters.slice();
    let steps = 0;
    const regularizer = {
      addPenaltyGradient(_: Float32Array, gradient: Float32Array) {
        if (++steps === 2) gradient[3] = NaN;
      },
    };
    const run = trainLora(model, examples, { ...rate, parameters, regularizer });
    await expect(run).rejects.toMatchObject({ code: 'bad_gradient' });
    expect(steps).toBe(2);
    expect(parameters).toEqual(kept);
    const gradient = new Float32Array(parameters.length);
    const infinite = parameters.map(() => 1e30);
    await expect(model.addGradient(infinite, examples[0]!, gradient)).rejects.toMatchObject({ code: 'bad_gradient' });
    expect(gradient.every((value) => value === 0)).toBe(true);
  });

  test('refuses states of other runs and parameters of other layouts', async () => {
    const { state } = await trainLora(model, examples, { ...rate, maxSteps: 1 });
    const bad = [
      { ...state, seed: 2 },
      { ...state, numExamples: 5 },
      { ...state, numSteps: -1 },
      { ...state, first: state.first.slice(1) },
      { ...state, parameters: state.parameters.with(0, NaN) },
    ];
    for (const state of bad) {
      await expect(trainLora(model, examples, { ...rate, state })).rejects.toMatchObject({ code: 'invalid_option' });
    }
    const short = trainLora(model, examples, { parameters: new Float32Array(3) });
    await expect(short).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(trainLora(model, [], {})).rejects.toMatchObject({ code: 'invalid_option' });
  });
});

test('[LT5] examples out of range are typed errors', async () => {
  const refuse = (example: TrainingExample, code: string) =>
    expect(model.loss(null, example), JSON.stringify(example)).rejects.toMatchObject({ code });
  await refuse({ tokenIds: [1, 2, 260], numPromptTokens: 1 }, 'invalid_token');
  await refuse({ tokenIds: [1, 2, 3], numPromptTokens: 0 }, 'invalid_option');
  await refuse({ tokenIds: [1, 2, 3], numPromptTokens: 3 }, 'invalid_option');
  await refuse({ tokenIds: [1, 2, 3], numPromptTokens: 1, weight: NaN }, 'invalid_option');
  await refuse({ tokenIds: Array(17).fill(1), numPromptTokens: 1 }, 'context_overflow');
});
