import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import { loadRandom } from '../../test/support/run-model.ts';
import { createRandom } from '../core/random.ts';
import { createSampler, type GenerateParams, resolveGenerateParams, type Sampler } from '../sampling/index.ts';
import type { LoadedModel } from '../models/types.ts';
import { createEngine } from './engine.ts';
import type { EngineEvent } from './types.ts';

const asks: GenerateParams[] = [
  { temperature: 0 },
  {},
  { topK: 20, topLogprobs: 3 },
  { topP: 1, temperature: 1.5, topLogprobs: 0 },
  { typicalP: 0.8, topLogprobs: 5 },
  { temperature: 0, repetitionPenalty: 1.4, logitBias: { 5: 3, 6: -100 }, topLogprobs: 2 },
  { topP: 0.6, frequencyPenalty: 0.7, minP: 0.01 },
];
const samplerOf = (ask: GenerateParams, seed: number): Sampler =>
  createSampler(resolveGenerateParams(ask), createRandom(seed));
/** A sampler that asks for no top logits, so it always gets the full row. */
const plainOf = (ask: GenerateParams, seed: number): Sampler => {
  const { sample } = samplerOf(ask, seed);
  return { sample: (logits, history) => sample(logits, history) };
};

const loadModel = (): Promise<LoadedModel> =>
  loadRandom({ architecture: 'llama', type: 'Q8_0', seed: 3, shape: { numLayers: 1 } });

async function serve(samplers: readonly Sampler[], open: () => Promise<LoadedModel> = loadModel) {
  const model = await open();
  const engine = createEngine(model, { maxContext: 64, now: () => 0 });
  const events: EngineEvent[] = [];
  samplers.forEach((sampler, id) =>
    engine.add(engineRequest({ id, promptIds: [1, 40 + id, 7], maxTokens: 12, sampler })),
  );
  while (engine.hasWork) events.push(...(await engine.step()));
  await engine.dispose();
  return samplers.map((_, id) =>
    events.flatMap((event) => (event.type === 'token' && event.id === id ? [event.token] : [])),
  );
}

test('[E1] tokens and log-probabilities do not depend on the top logits others request', async () => {
  const together = await serve(asks.map(samplerOf));
  expect(together.every((tokens) => tokens.length === 12)).toBe(true);
  for (const [id] of asks.entries()) {
    // The same id, so the same prompt; the others request no top logits.
    const alone = await serve(asks.map((other, i) => (i === id ? samplerOf(other, i) : plainOf(other, i))));
    expect(alone[id]).toEqual(together[id]);
  }
});

test('[E4] samples the same tokens as samplers that read whole rows', async () => {
  const idsOf = (tokens: Awaited<ReturnType<typeof serve>>): number[][] =>
    tokens.map((list) => list.map(({ tokenId }) => tokenId));
  expect(idsOf(await serve(asks.map(samplerOf)))).toEqual(idsOf(await serve(asks.map(plainOf))));
});

test('a step computes the largest number of top logits any sampler requests', async () => {
  const model = await loadRandom({ architecture: 'llama', type: 'Q8_0', seed: 3, shape: { numLayers: 1 } });
  const asked: (number | undefined)[] = [];
  const watched = {
    ...model,
    forward: (batch: Parameters<typeof model.forward>[0]) => {
      asked.push(batch.numTop);
      return model.forward(batch);
    },
  };
  const engine = createEngine(watched, { maxContext: 64, now: () => 0 });
  const wishes: GenerateParams[][] = [[{ temperature: 0 }, { topK: 9 }], [{ minP: 0 }], [{ minP: 0 }, {}]];
  let id = 0;
  for (const wish of wishes) {
    for (const ask of wish) {
      engine.add(engineRequest({ id: id++, promptIds: [1], maxTokens: 1, sampler: samplerOf(ask, id) }));
    }
    await engine.step();
  }
  expect(asked).toEqual([9, 0, 256]);
  await engine.dispose();
});

/** A model whose logits stay on a device until they are fetched: unread rows are NaN. */
async function loadOnDevice(): Promise<LoadedModel & { numFetches: number }> {
  const model = await loadModel();
  let logits = new Float32Array();
  const device = {
    ...model,
    numFetches: 0,
    async forward(batch: Parameters<LoadedModel['forward']>[0]) {
      logits = (await model.forward(batch)).slice();
      return batch.leavesLogits === true ? new Float32Array(logits.length).fill(NaN) : logits;
    },
    async readLogits() {
      device.numFetches++;
      return logits;
    },
  };
  return device;
}

test.each(asks.map((ask, i) => [i, ask] as const))(
  '[E47] samples the same tokens if the logits stay on a device (%i)',
  async (i, ask) => {
    const expected = await serve([samplerOf(ask, i)]);
    const device = await loadOnDevice();
    expect(await serve([samplerOf(ask, i)], async () => device)).toEqual(expected);
    if (i === 0) expect(device.numFetches).toBe(0);
  },
);

test('[E47] fetches the logits of a step whose top logits do not decide every token', async () => {
  // The nucleus of 0.999 is wider than 256 tokens here.
  const flat: GenerateParams = { topP: 0.999, temperature: 1 };
  const expected = await serve([samplerOf(flat, 1), samplerOf({ temperature: 0 }, 2)]);
  const device = await loadOnDevice();
  expect(await serve([samplerOf(flat, 1), samplerOf({ temperature: 0 }, 2)], async () => device)).toEqual(expected);
  expect(device.numFetches).toBeGreaterThan(0);
});
