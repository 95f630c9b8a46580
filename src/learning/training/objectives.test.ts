import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { createRandom } from '../../core/random.ts';
import { openGguf } from '../../gguf/index.ts';
import { createWasmPackFactory } from '../../kernels/wasm/wasm-pack.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { recordLogps } from '../lora-training/token-objective.ts';
import { createTrainingModel } from '../lora-training/training-model.ts';
import { trainLora } from '../lora-training/train-lora.ts';
import type { Trainable, TrainingExample, TrainingModel } from '../lora-training/types.ts';
import { createObjective, type ObjectiveItem, type ObjectiveSpec } from './objectives.ts';
import { groupAdvantages } from './policy-gradient.ts';
import type { ReferenceAnswer } from './preference.ts';

let model: TrainingModel;
beforeAll(async () => {
  const shape = { numLayers: 2, embeddingDim: 24, numHeads: 6, numKvHeads: 2, headDim: 4, feedForwardDim: 20, vocabSize: 260 }; // prettier-ignore
  const gguf = openGguf(createMemorySource(buildRandomModel({ architecture: 'llama', type: 'F32', seed: 3, shape })));
  model = await createTrainingModel(gguf, createWasmPackFactory(createNodeWasmPlatform(['simd128'])), {
    rank: 2,
    maxTokens: 16,
  });
});
afterAll(() => model.dispose());

const accepted: TrainingExample = { tokenIds: [5, 17, 80, 33, 60, 7], numPromptTokens: 2 };
const rejected: TrainingExample = { tokenIds: [5, 17, 90, 12], numPromptTokens: 2 };
const withCorrection: TrainingExample = { tokenIds: [8, 80, 33, 5, 17, 80, 33, 60, 7], numPromptTokens: 5 };

/** Parameters that change the model noticeably. */
function someParameters(seed: number, size = 0.3): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length: model.layout.numParameters }, () => (random.next() - 0.5) * size);
}

async function logpsOf(parameters: Float32Array | null, example: TrainingExample): Promise<Float64Array> {
  const logps = new Float64Array(example.tokenIds.length - example.numPromptTokens);
  await model.loss(parameters, example, { objective: recordLogps(logps) });
  return logps;
}

async function answer(example: TrainingExample): Promise<ReferenceAnswer> {
  return { example, referenceLogp: (await logpsOf(null, example)).reduce((sum, logp) => sum + logp, 0) };
}

/** The largest error of the gradient along random directions, beside central differences of the same loss. */
async function worstSlope(objective: Trainable<ObjectiveItem>, item: ObjectiveItem): Promise<number> {
  const parameters = someParameters(11);
  const gradient = new Float32Array(parameters.length);
  await objective.prepareBatch?.(parameters, [item]);
  await objective.addGradient(parameters, item, gradient);
  const size = Math.sqrt(gradient.reduce((sum, value) => sum + value * value, 0));
  expect(size).toBeGreaterThan(1e-6);
  const random = createRandom(5);
  let worst = 0;
  for (let round = 0; round < 6; round++) {
    const direction = Float64Array.from(gradient, () => (random.next() < 0.5 ? -1 : 1));
    const step = 0.01 / Math.sqrt(direction.length);
    const lossAt = async (sign: number): Promise<number> => {
      const moved = parameters.map((value, i) => value + sign * step * direction[i]!);
      return (await objective.addGradient(moved, item, new Float32Array(moved.length))).loss;
    };
    const numeric = ((await lossAt(1)) - (await lossAt(-1))) / (2 * step);
    const analytic = direction.reduce((sum, sign, i) => sum + sign * gradient[i]!, 0);
    worst = Math.max(worst, Math.abs(analytic - numeric) / size);
  }
  return worst;
}

describe('[TR1] [LT11] every gradient is the slope of its loss', () => {
  const expectSlope = async (spec: ObjectiveSpec, item: ObjectiveItem): Promise<void> =>
    expect(await worstSlope(createObjective(model, spec), item)).toBeLessThan(0.02);

  test.each(['forward', 'reverse'] as const)('distillation by the %s divergence', (divergence) =>
    expectSlope({ kind: 'distill', divergence }, { student: accepted, teacher: withCorrection }),
  );

  test('DPO', async () =>
    expectSlope({ kind: 'dpo', beta: 0.5 }, { chosen: await answer(accepted), rejected: await answer(rejected) }));

  test.each([true, false])('KTO, accepted: %s', async (isAccepted) =>
    expectSlope(
      { kind: 'kto', beta: 0.5 },
      { ...(await answer(accepted)), isAccepted, mismatch: await answer(rejected) },
    ),
  );

  test.each([1.5, -0.7])('GRPO with the advantage %d, beside and beyond the clip', async (advantage) => {
    // Sampled by other parameters: the ratios of some tokens are beyond the clip, those of others are not.
    const sampledLogps = await logpsOf(someParameters(12), accepted);
    const referenceLogps = await logpsOf(null, accepted);
    const ratios = (await logpsOf(someParameters(11), accepted)).map((logp, i) => Math.exp(logp - sampledLogps[i]!));
    const isBeyond = (ratio: number): boolean => (advantage > 0 ? ratio > 1.02 : ratio < 0.98);
    expect(ratios.some(isBeyond) && !ratios.every(isBeyond)).toBe(true);
    const item = { example: accepted, advantage, sampledLogps, referenceLogps };
    await expectSlope({ kind: 'grpo', clip: 0.02, klWeight: 0.3 }, item);
  });
});

describe('[TR2] training moves probabilities the right way', () => {
  const rate = { learningRate: 0.02, batchSize: 1, numEpochs: 10 };
  const totalOf = async (parameters: Float32Array | null, example: TrainingExample): Promise<number> =>
    (await logpsOf(parameters, example)).reduce((sum, logp) => sum + logp, 0);

  test('DPO raises the margin of the chosen answer; equal answers change nothing', async () => {
    const pair = { chosen: await answer(accepted), rejected: await answer(rejected) };
    const { parameters } = await trainLora(createObjective(model, { kind: 'dpo', beta: 0.1 }), [pair], rate);
    const margin = (await totalOf(parameters, accepted)) - (await totalOf(parameters, rejected));
    expect(margin).toBeGreaterThan(pair.chosen.referenceLogp - pair.rejected.referenceLogp + 2);
    const gradient = new Float32Array(model.layout.numParameters);
    const same = { chosen: pair.chosen, rejected: pair.chosen };
    await createObjective(model, { kind: 'dpo', beta: 0.1 }).addGradient(parameters, same, gradient);
    expect(Math.max(...gradient.map(Math.abs))).toBeLessThan(1e-6);
  });

  test('KTO makes accepted answers likelier and rejected ones less likely', async () => {
    const [good, bad] = [await answer(accepted), await answer(rejected)];
    for (const isAccepted of [true, false]) {
      const item = { ...good, isAccepted, mismatch: bad };
      const { parameters } = await trainLora(createObjective(model, { kind: 'kto', beta: 0.1 }), [item], rate);
      const change = (await totalOf(parameters, accepted)) - good.referenceLogp;
      expect(change * (isAccepted ? 1 : -1)).toBeGreaterThan(0.5);
    }
  });

  test('distillation ends at the distribution of the teacher', async () => {
    const item = { student: accepted, teacher: withCorrection };
    for (const divergence of ['forward', 'reverse'] as const) {
      const objective = createObjective(model, { kind: 'distill', divergence });
      const { losses } = await trainLora(objective, [item], { ...rate, numEpochs: 40 });
      expect(losses.at(-1)).toBeLessThan(losses[0]! * 0.2);
      // The model of the file without a correction is its own teacher.
      const none = await objective.addGradient(
        new Float32Array(model.layout.numParameters),
        { student: accepted, teacher: accepted },
        new Float32Array(model.layout.numParameters),
      );
      expect(Math.abs(none.loss)).toBeLessThan(1e-5);
    }
  });

  test('advantages are relative to the samples of a prompt, and 0 if these are equal', () => {
    expect(groupAdvantages([1, 0, 0, 1])).toEqual([1, -1, -1, 1]);
    expect(groupAdvantages([1, 1, 1])).toEqual([0, 0, 0]);
  });
});

test('[TR3] items that do not fit together are refused before anything is computed', async () => {
  const check = (spec: ObjectiveSpec, item: ObjectiveItem) => () => createObjective(model, spec).check(item);
  expect(check({ kind: 'distill', divergence: 'forward' }, { student: accepted, teacher: rejected })).toThrow(
    "the teacher's answer of 2 tokens is not the student's of 4",
  );
  const good = await answer(accepted);
  const broken = { ...good, referenceLogp: NaN };
  expect(check({ kind: 'dpo', beta: 0.1 }, { chosen: good, rejected: broken })).toThrow('NaN');
  expect(
    check(
      { kind: 'grpo', clip: 0.2, klWeight: 0 },
      { example: accepted, advantage: 1, sampledLogps: new Float64Array(3), referenceLogps: new Float64Array(4) },
    ),
  ).toThrow('an answer of 4 tokens with 3 and 4 log probabilities');
});
