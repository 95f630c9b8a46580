import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import type { TokenSample } from '../micro-lora/types.ts';
import { createHeadModel } from './head-model.ts';
import { initialParameters } from './parameter-layout.ts';
import { trainLora } from './train-lora.ts';
import type { TrainingExample } from './types.ts';

const SHAPE = { hiddenDim: 6, vocabSize: 9, rank: 2, maxTokens: 16 };
const model = createHeadModel(SHAPE);

function exampleOf(seed: number, label: number, weight = 1): TrainingExample {
  const random = createRandom(seed);
  const sample = (): TokenSample => ({
    hidden: Float32Array.from({ length: 6 }, () => random.next() * 2 - 1),
    label,
    ids: [0, 1, 2, 3, 4].map((id) => (label + id) % 9),
    logits: [0.5, 0.4, 0.1, 0, -0.3],
    logSumExp: 2.2,
  });
  return { tokenIds: [1, 2, label, label], numPromptTokens: 2, weight, samples: [sample(), sample()] };
}

for (const weight of [1, -0.5]) {
  test(`the gradient of weight ${weight} is the slope of the loss`, async () => {
    const example = exampleOf(3, 4, weight);
    const parameters = initialParameters(model.layout, 2).map((value, i) => value + Math.sin(i) / 10);
    const gradient = new Float32Array(parameters.length);
    await model.addGradient(parameters, example, gradient);
    const lossAt = async (at: number, step: number): Promise<number> => {
      const moved = parameters.slice();
      moved[at]! += step;
      return (await model.loss(moved, example)).loss;
    };
    for (let at = 0; at < parameters.length; at++) {
      const slope = ((await lossAt(at, 1e-2)) - (await lossAt(at, -1e-2))) / 2e-2;
      expect(gradient[at]! / Math.abs(weight), `parameter ${at}`).toBeCloseTo(slope, 3);
    }
  });
}

test('training lowers the loss of similar hidden states and changes only the LM head', async () => {
  const examples = [1, 2, 3, 4].map((seed) => exampleOf(seed, 5));
  const { parameters } = await trainLora(model, examples, { numEpochs: 20, learningRate: 0.02 });
  expect((await model.loss(parameters, exampleOf(1, 5))).loss).toBeLessThan(
    (await model.loss(null, exampleOf(1, 5))).loss,
  );
  expect(model.layout.matrices.map(({ target }) => target)).toEqual(['output']);
});

test('an example without hidden states is refused', async () => {
  await expect(model.loss(null, { tokenIds: [1, 2], numPromptTokens: 1 })).rejects.toMatchObject({
    code: 'invalid_option',
  });
});
