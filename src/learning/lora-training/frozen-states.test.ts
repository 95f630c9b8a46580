import { describe, expect, test } from 'vitest';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { openGguf } from '../../gguf/index.ts';
import type { KernelPackFactory } from '../../kernels/contract.ts';
import { createReferencePackFactory } from '../../kernels/reference/reference-pack.ts';
import { createFrozenStates } from './frozen-states.ts';
import { createTrainingModel } from './training-model.ts';

const shape = { numLayers: 4, embeddingDim: 24, numHeads: 4, numKvHeads: 2, headDim: 6, feedForwardDim: 20, vocabSize: 260 }; // prettier-ignore
const examples = [
  { tokenIds: [5, 17, 80, 33, 200, 9, 41, 7], numPromptTokens: 3 },
  { tokenIds: [5, 17, 80, 34], numPromptTokens: 2 },
];

async function open(numLayers: number) {
  const base = createReferencePackFactory();
  const counts = { products: 0 };
  const factory: KernelPackFactory = {
    ...base,
    async create(options) {
      const pack = await base.create(options);
      return {
        ...pack,
        matmul(operation) {
          counts.products++;
          pack.matmul(operation);
        },
      };
    },
  };
  const gguf = openGguf(createMemorySource(buildRandomModel({ architecture: 'llama', type: 'F32', seed: 3, shape })));
  const model = await createTrainingModel(gguf, factory, { rank: 3, maxTokens: 32, numLayers });
  return { model, counts };
}

describe('[LT10] layers without adapters', () => {
  test('are computed once for an example, and change no bit of losses and gradients', async () => {
    const run = async ({ model, counts }: Awaited<ReturnType<typeof open>>) => {
      const parameters = Float32Array.from({ length: model.layout.numParameters }, (_, i) => Math.sin(i) * 0.1);
      const results = [];
      for (const example of [...examples, ...examples]) {
        const gradient = new Float32Array(parameters.length);
        const before = counts.products;
        const { loss } = await model.addGradient(parameters, example, gradient);
        results.push({ loss, gradient, products: counts.products - before });
      }
      await model.dispose();
      return results;
    };
    const [one, two, oneAgain, twoAgain] = await run(await open(1));
    expect([oneAgain!.loss, twoAgain!.loss]).toEqual([one!.loss, two!.loss]);
    expect([oneAgain!.gradient, twoAgain!.gradient]).toEqual([one!.gradient, two!.gradient]);
    // Three of four layers, with four products each.
    expect(one!.products - oneAgain!.products).toBe(12);
    const all = await run(await open(4));
    expect(all[2]!.products).toBe(all[0]!.products);
  });
});

describe('the states', () => {
  const statesOf = (id: number): Float32Array => new Float32Array(4).fill(id);

  test('of the first examples stay when all do not fit, because epochs visit them in turn', () => {
    const cache = createFrozenStates(48);
    let numHits = 0;
    for (let round = 0; round < 5; round++) {
      for (let id = 0; id < 5; id++) {
        if (cache.find([id]) !== null) numHits++;
        else cache.keep([id], statesOf(id));
      }
    }
    expect(numHits).toBe(4 * 3);
    expect(cache.find([0])).toEqual(statesOf(0));
  });

  test('of examples that are no longer used make room', () => {
    const cache = createFrozenStates(48);
    for (let id = 0; id < 3; id++) cache.keep([id], statesOf(id));
    for (let round = 0; round < 4; round++) {
      for (let id = 10; id < 13; id++) if (cache.find([id]) === null) cache.keep([id], statesOf(id));
    }
    expect([10, 11, 12].map((id) => cache.find([id])?.[0] ?? null)).toEqual([10, 11, 12]);
    expect(cache.find([0])).toBeNull();
  });

  test('are copies, and tokens are told apart', () => {
    const cache = createFrozenStates();
    const states = statesOf(1);
    cache.keep([1, 23], states);
    states.fill(9);
    expect(cache.find([1, 23])).toEqual(statesOf(1));
    expect(cache.find([12, 3])).toBeNull();
  });
});
