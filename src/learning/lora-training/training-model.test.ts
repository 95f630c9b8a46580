import { afterEach, describe, expect, test } from 'vitest';
import { buildRandomModel, type RandomModelOptions } from '../../../test/support/random-model.ts';
import { loadBytes, runParts } from '../../../test/support/run-model.ts';
import { ADAPTER_TARGETS, type AdapterTarget } from '../../adapters/types.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { createRandom } from '../../core/random.ts';
import { openGguf } from '../../gguf/index.ts';
import { createReferencePackFactory } from '../../kernels/reference/reference-pack.ts';
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

test('[LT2] the loss is what inference says of the same tokens', async () => {
  for (const architecture of ['llama', 'qwen2', 'qwen3', 'phi3'] as const) {
    const bytes = buildRandomModel({ ...tiny, shape: {}, architecture, type: 'Q8_0' });
    const served = await loadBytes(bytes, {
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

function logSoftmax(logits: Float32Array, id: number): number {
  const max = logits.reduce((most, value) => Math.max(most, value));
  return logits[id]! - max - Math.log(logits.reduce((sum, value) => sum + Math.exp(value - max), 0));
}
