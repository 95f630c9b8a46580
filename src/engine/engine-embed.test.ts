import { describe, expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import {
  createToyModel,
  createToySampler,
  TOY_VOCAB,
  toyContinuation,
  toyEmbedding,
  type ToyModelOptions,
} from '../../test/support/toy-model.ts';
import { createEngine, type Engine } from './engine.ts';
import { type Pooling, POOLINGS } from './pooling.ts';
import type { EngineEvent, EngineRequest } from './types.ts';

const ids = (length: number, seed = 0): number[] => Array.from({ length }, (_, i) => (seed + i * 7) % TOY_VOCAB);

const toEmbed = (id: number, promptIds: number[], pooling: Pooling, more: Partial<EngineRequest> = {}): EngineRequest =>
  engineRequest({
    id,
    promptIds,
    maxTokens: 0,
    sampler: { sample: () => expect.fail('sampled') },
    cachePrefix: false,
    pooling,
    ...more,
  });

const toGenerate = (id: number, promptIds: number[], maxTokens: number): EngineRequest =>
  engineRequest({ id, promptIds, maxTokens, sampler: createToySampler(id) });

function setUp(options: ToyModelOptions & { maxContext?: number } = {}) {
  const model = createToyModel(options);
  let clock = 0;
  return { model, engine: createEngine(model, { maxContext: options.maxContext ?? 1024, now: () => clock++ }) };
}

async function runToEnd(engine: Engine): Promise<EngineEvent[]> {
  const events: EngineEvent[] = [];
  while (engine.hasWork) {
    events.push(...(await engine.step()));
    engine.checkIntegrity();
  }
  expect(engine.stats()).toMatchObject({ numFreePages: engine.stats().numPages });
  return events;
}

const vectorOf = (events: readonly EngineEvent[], id: number): Float32Array | undefined =>
  events.flatMap((event) => (event.type === 'embedded' && event.id === id ? [event.embedding] : []))[0];

describe.each(POOLINGS)('[E25] %s', (pooling) => {
  test("equals the model's own vector in one step or many, while others generate", async () => {
    const answer = toyContinuation(ids(20, 5), { seed: 1, maxTokens: 30 });
    for (const maxBatchTokens of [256, 7]) {
      const { engine } = setUp({ limits: { maxBatchTokens } });
      engine.add(toEmbed(0, ids(33), pooling));
      engine.add(toGenerate(1, ids(20, 5), 30));
      engine.add(toEmbed(2, ids(1, 9), pooling));
      const events = await runToEnd(engine);
      expect(vectorOf(events, 0)).toEqual(toyEmbedding(ids(33), pooling));
      expect(vectorOf(events, 2)).toEqual(toyEmbedding(ids(1, 9), pooling));
      expect(events.flatMap((event) => (event.type === 'token' ? [event.token.tokenId] : []))).toEqual(answer);
    }
  });

  test('[E26] an encoder computes each sequence in one step, batching as many as fit', async () => {
    const { engine, model } = setUp({ isCausal: false, limits: { maxBatchTokens: 40, maxSequences: 3 } });
    const lengths = [25, 20, 15, 40, 1, 2, 3, 4];
    lengths.forEach((length, id) => engine.add(toEmbed(id, ids(length, id), pooling)));
    const events = await runToEnd(engine);
    lengths.forEach((length, id) => {
      expect(vectorOf(events, id)).toEqual(toyEmbedding(ids(length, id), pooling, false));
    });
    expect(model.batches.map(({ sequences }) => sequences.map(({ numRows }) => numRows))).toEqual([
      [25],
      [20, 15],
      [40],
      [1, 2, 3],
      [4],
    ]);
  });
});

test('computes no logits, and hidden states only for pooled rows', async () => {
  const { engine, model } = setUp({ limits: { maxBatchTokens: 10 } });
  engine.add(toEmbed(0, ids(15), 'last'));
  await runToEnd(engine);
  expect(model.batches.map(({ logitRows, hiddenRows }) => [logitRows, hiddenRows])).toEqual([
    [[], []],
    [[], [4]],
  ]);
});

test('accepts a text as long as the context and rejects one token more with both numbers', async () => {
  const { engine } = setUp({ limits: { numPages: 4 }, maxContext: 64 });
  engine.add(toEmbed(0, ids(64), 'mean'));
  expect(() => engine.add(toEmbed(1, ids(65), 'mean'))).toThrow(
    expect.objectContaining({ code: 'context_overflow', data: { promptTokens: 65, maxContext: 64 } }),
  );
  expect(vectorOf(await runToEnd(engine), 0)).toEqual(toyEmbedding(ids(64), 'mean'));
});

test("limits an encoder's text to one step", () => {
  const { engine } = setUp({ isCausal: false, limits: { maxBatchTokens: 40 } });
  expect(engine.maxContext).toBe(40);
  expect(() => engine.add(toEmbed(0, ids(41), 'mean'))).toThrow(expect.objectContaining({ code: 'context_overflow' }));
});

test('an encoder rejects generation', () => {
  const { engine } = setUp({ isCausal: false });
  expect(() => engine.add(toGenerate(0, [1], 1))).toThrow(
    expect.objectContaining({ code: 'unsupported', message: expect.stringContaining('encoder') }),
  );
});

test('[E25] gives the same vector after a preemption', async () => {
  const { engine } = setUp({ limits: { numPages: 6, maxBatchTokens: 16 } });
  engine.add(toEmbed(0, ids(80), 'mean'));
  await engine.step();
  await engine.step();
  engine.add(engineRequest({ ...toGenerate(1, ids(40, 3), 20), priority: 5 }));
  const events = await runToEnd(engine);
  expect(engine.stats().numPreemptions).toBeGreaterThan(0);
  expect(vectorOf(events, 0)).toEqual(toyEmbedding(ids(80), 'mean'));
});

test('leaves nothing in the prefix cache', async () => {
  const { engine } = setUp();
  engine.add(toEmbed(0, ids(64), 'mean'));
  await runToEnd(engine);
  expect(engine.stats().cache).toMatchObject({ numCachedPages: 0, usedBytes: 0 });
});

test('non-finite hidden states fail only their sequence', async () => {
  const model = createToyModel();
  const spoiled = { ...model, hiddenStates: () => model.hiddenStates().map((value, i) => (i < 3 ? NaN : value)) };
  const engine = createEngine(spoiled, { maxContext: 64, now: () => 0 });
  engine.add(toEmbed(0, ids(1), 'mean'));
  engine.add(toEmbed(1, ids(2), 'mean'));
  const events = await runToEnd(engine);
  expect(events[0]).toMatchObject({ type: 'failed', id: 0, error: { code: 'bad_logits' } });
  expect(vectorOf(events, 1)).toEqual(toyEmbedding(ids(2), 'mean'));
});

test("an abort during a step leaves the other sequences' rows intact", async () => {
  const { engine, model } = setUp({
    beforeForward() {
      if (model.batches.length === 1) engine.abort(0);
    },
  });
  engine.add(toEmbed(0, ids(9), 'mean'));
  engine.add(toEmbed(1, ids(5, 3), 'mean'));
  const events = await runToEnd(engine);
  expect(events.map(({ id }) => id)).toEqual([1]);
  expect(vectorOf(events, 1)).toEqual(toyEmbedding(ids(5, 3), 'mean'));
});
