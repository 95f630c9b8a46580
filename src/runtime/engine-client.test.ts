import { expect, test } from 'vitest';
import { createInProcessTransport } from '../../test/support/in-process-transport.ts';
import { createToyModel, toyContinuation, type ToyModelOptions } from '../../test/support/toy-model.ts';
import { opened, TOY_SPEC, toyRequest } from '../../test/support/toy-spec.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { GenerateRequest } from '../engine/protocol.ts';
import type { EngineEvent } from '../engine/types.ts';
import { createEngineClient, type EngineClient } from './engine-client.ts';

async function setUp(options: ToyModelOptions = {}) {
  const model = createToyModel(options);
  const transport = createInProcessTransport({ openModel: async () => opened(model) });
  const client = createEngineClient(transport);
  const report = await client.load(TOY_SPEC, {});
  return { model, transport, client, report };
}

/** All events of one request, up to its end. */
function collect(client: EngineClient, request: Omit<GenerateRequest, 'id'>): Promise<EngineEvent[]> {
  return new Promise((resolve) => {
    const events: EngineEvent[] = [];
    client.generate(request, (event) => {
      events.push(event);
      if (event.type !== 'token') resolve(events);
    });
  });
}

const tokensOf = (events: readonly EngineEvent[]): number[] =>
  events.flatMap((event) => (event.type === 'token' ? [event.token.tokenId] : []));

const ask = { promptIds: [3, 1, 4], maxTokens: 25, seed: 9 };

test('loads, reports the model and its progress', async () => {
  const progress: number[][] = [];
  const transport = createInProcessTransport({
    async openModel(spec, onProgress) {
      expect(spec).toEqual(TOY_SPEC);
      onProgress(5, 10);
      onProgress(10, 10);
      return opened(createToyModel());
    },
  });
  const client = createEngineClient(transport);
  const report = await client.load(TOY_SPEC, { onProgress: (done, total) => progress.push([done, total]) });
  expect(progress).toEqual([
    [5, 10],
    [10, 10],
  ]);
  expect(report).toMatchObject({
    kernels: 'toy',
    numThreads: 1,
    numPages: 64,
    maxContext: 512,
    memory: { weightBytes: 1, kvBytes: 2, activationBytes: 3 },
  });
  expect(client.isAlive).toBe(true);
  expect(transport.isBusy).toBe(false);
});

test('what onProgress throws fails the load and ends the other side', async () => {
  const transport = createInProcessTransport({
    async openModel(_spec, onProgress) {
      onProgress(5, 10);
      onProgress(10, 10);
      return opened(createToyModel());
    },
  });
  const mine = new Error('mine');
  let numCalls = 0;
  const onProgress = (): never => {
    numCalls++;
    throw mine;
  };
  await expect(createEngineClient(transport).load(TOY_SPEC, { onProgress })).rejects.toBe(mine);
  expect({ numCalls, isClosed: transport.isClosed }).toEqual({ numCalls: 1, isClosed: true });
});

test('a model that does not load rejects with its own error, and the worker is ended', async () => {
  const transport = createInProcessTransport({
    async openModel() {
      throw new RuvLLMError('out_of_memory', 'needs 10, has 5', { data: { neededBytes: 10, freeBytes: 5 } });
    },
  });
  const loading = createEngineClient(transport).load(TOY_SPEC, {});
  await expect(loading).rejects.toMatchObject({ code: 'out_of_memory', data: { neededBytes: 10, freeBytes: 5 } });
  expect(transport.isClosed).toBe(true);
});

test('aborting a load ends the worker', async () => {
  const controller = new AbortController();
  const transport = createInProcessTransport({ openModel: () => new Promise(() => {}) });
  const client = createEngineClient(transport);
  const loading = client.load(TOY_SPEC, { signal: controller.signal });
  controller.abort('enough');
  await expect(loading).rejects.toMatchObject({ code: 'aborted', cause: 'enough' });
  expect(transport.isClosed).toBe(true);
  expect(client.isAlive).toBe(false);
});

test('two requests at once get what each gets alone', async () => {
  const { client, model } = await setUp();
  const other = { promptIds: Array.from({ length: 40 }, (_, i) => i), maxTokens: 20, seed: 2 };
  const [first, second] = await Promise.all([collect(client, toyRequest(ask)), collect(client, toyRequest(other))]);
  expect(tokensOf(first)).toEqual(toyContinuation(ask.promptIds, ask));
  expect(tokensOf(second)).toEqual(toyContinuation(other.promptIds, other));
  expect(model.batches.some((batch) => batch.sequences.length === 2)).toBe(true);
});

test('an abort is seen within one step and frees every page', async () => {
  const { client, model, transport } = await setUp();
  const events: EngineEvent[] = [];
  const endless = { promptIds: [1, 2], maxTokens: 400, seed: 1 };
  await new Promise<void>((resolve) => {
    const call = client.generate(toyRequest(endless), (event) => {
      events.push(event);
      if (events.length === 3) {
        call.abort();
        resolve();
      }
    });
  });
  const stats = await client.stats();
  expect(stats).toMatchObject({ numRunning: 0, numWaiting: 0, numFreePages: 64 });
  expect(events).toHaveLength(3);
  // Three answers took some turns to arrive here; the engine must not have run far ahead of the abort.
  expect(model.batches.length).toBeLessThan(10);
  expect(transport.isBusy).toBe(false);
});

test('a refused request fails alone, with the numbers', async () => {
  const { client } = await setUp();
  const events = await collect(client, toyRequest({ promptIds: [1], maxTokens: 600, seed: 1 }));
  expect(events).toMatchObject([
    { type: 'failed', error: { code: 'context_overflow', data: { promptTokens: 1, maxTokens: 600, maxContext: 512 } } },
  ]);
  expect(tokensOf(await collect(client, toyRequest(ask)))).toEqual(toyContinuation(ask.promptIds, ask));
});

test('a lost worker fails everything in flight and refuses what comes later', async () => {
  const { client, transport } = await setUp({ beforeForward: () => new Promise(() => {}) });
  const failing = [collect(client, toyRequest(ask)), collect(client, toyRequest(ask))];
  const stats = client.stats();
  transport.lose(new RuvLLMError('kernel_failed', 'the engine worker exited with code 134'));
  for (const events of await Promise.all(failing)) {
    expect(events).toMatchObject([{ type: 'failed', error: { code: 'kernel_failed' } }]);
  }
  await expect(stats).rejects.toMatchObject({ code: 'kernel_failed' });
  expect(client.isAlive).toBe(false);
  expect(() => client.generate(toyRequest(ask), () => {})).toThrow(
    expect.objectContaining({
      code: 'not_loaded',
      message: 'the engine ended: the engine worker exited with code 134',
    }),
  );
  await client.dispose();
});

test('dispose fails what is in flight, frees the model, ends the worker, and may be called twice', async () => {
  const { client, model, transport } = await setUp();
  const events = collect(client, toyRequest({ ...ask, maxTokens: 400 }));
  await Promise.all([client.dispose(), client.dispose()]);
  expect(await events).toMatchObject([{ type: 'failed', error: { code: 'not_loaded' } }]);
  expect(model.isDisposed).toBe(true);
  expect(transport.isClosed).toBe(true);
  await expect(client.stats()).rejects.toMatchObject({ code: 'not_loaded' });
});

test('the line keeps the process alive only while an answer is due', async () => {
  const { client, transport } = await setUp();
  const events = collect(client, toyRequest(ask));
  expect(transport.isBusy).toBe(true);
  await events;
  await client.stats();
  expect(transport.isBusy).toBe(false);
});
