import { expect, test } from 'vitest';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { randomAdapter } from '../../test/support/random-adapter.ts';
import { loadRandom } from '../../test/support/run-model.ts';
import { createToyModel, createToySampler } from '../../test/support/toy-model.ts';
import { opened, TOY_SPEC, toyRequest } from '../../test/support/toy-spec.ts';
import type { StepBatch } from '../models/types.ts';
import { createEngineServer } from './engine-server.ts';
import type { ServerMessage } from './protocol.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function setUp(model = createToyModel()) {
  const posted: ServerMessage[] = [];
  const crashes: unknown[] = [];
  const server = createEngineServer({
    post: (message) => posted.push(message),
    openModel: async () => opened(model),
    createSampler: (params) => createToySampler(params.seed!),
    now: () => 0,
    yieldToMessages: nextTurn,
    onCrash: (error) => crashes.push(error),
  });
  return { server, posted, crashes };
}

const request = (id: number) => ({ ...toyRequest({ promptIds: [1], maxTokens: 3, seed: id }), id });

test('a request before the model is loaded fails with not_loaded', () => {
  const { server, posted } = setUp();
  server.handle({ type: 'generate', request: request(0) });
  expect(posted).toMatchObject([
    { type: 'events', events: [{ type: 'failed', id: 0, error: { code: 'not_loaded' } }] },
  ]);
});

test('sends one message per step with the events of all sequences', async () => {
  const { server, posted } = setUp();
  server.handle({ type: 'load', spec: TOY_SPEC });
  await nextTurn();
  server.handle({ type: 'generate', request: request(0) });
  server.handle({ type: 'generate', request: request(1) });
  while (
    !posted.some(
      (message) => message.type === 'events' && message.events.some((e) => e.type === 'finished' && e.id === 1),
    )
  )
    await nextTurn();
  const steps = posted.flatMap((message) =>
    message.type === 'events' ? [message.events.map((e) => [e.id, e.type])] : [],
  );
  expect(steps).toEqual([
    [
      [0, 'token'],
      [1, 'token'],
    ],
    [
      [0, 'token'],
      [1, 'token'],
    ],
    [
      [0, 'token'],
      [0, 'finished'],
      [1, 'token'],
      [1, 'finished'],
    ],
  ]);
});

test('dispose during work waits for the step, then frees the model', async () => {
  let release = (): void => {};
  const model = createToyModel({ beforeForward: () => new Promise<void>((resolve) => (release = resolve)) });
  const { server, posted } = setUp(model);
  server.handle({ type: 'load', spec: TOY_SPEC });
  await nextTurn();
  server.handle({ type: 'generate', request: request(0) });
  await nextTurn();
  server.handle({ type: 'dispose' });
  await nextTurn();
  expect(model.isDisposed).toBe(false);
  release();
  while (posted.at(-1)?.type !== 'disposed') await nextTurn();
  expect(model.isDisposed).toBe(true);
});

test.each([
  ['auto', null, 'q8 would shorten the longest sequence that fits', 160],
  ['q8', 'q8', 'a test', 0],
] as const)(
  'reports the actual packing for %s in a budget of ten pages',
  async (kvPacking, precision, reason, least) => {
    const model = createToyModel({ limits: { numPages: 10, maxBatchTokens: 64 }, packed: true });
    const posted: ServerMessage[] = [];
    const server = createEngineServer({
      post: (message) => posted.push(message),
      openModel: async () => ({ ...opened(model), kvPacking: { precision: 'q8', reason: 'a test' } }),
      createSampler: (params) => createToySampler(params.seed!),
      now: () => 0,
      yieldToMessages: nextTurn,
      onCrash: () => {},
    });
    server.handle({ type: 'load', spec: { ...TOY_SPEC, kvPacking, isContextGiven: false, kvCacheTokens: null } });
    await nextTurn();
    expect(posted).toMatchObject([{ type: 'loaded', model: { kvPacking: { precision, reason } } }]);
    const [loaded] = posted;
    const maxContext = loaded?.type === 'loaded' ? loaded.model.maxContext : -1;
    expect(least === 0 ? maxContext < 160 : maxContext === least).toBe(true);
  },
);

test('an integrity failure ends the server, though pages are not checked after every request', async () => {
  const model = createToyModel();
  const posted: ServerMessage[] = [];
  const crashes: unknown[] = [];
  let nowMs = 0;
  let numChecks = 0;
  const server = createEngineServer({
    post: (message) => posted.push(message),
    openModel: async () => opened(model),
    createSampler: (params) => createToySampler(params.seed!),
    now: () => nowMs,
    yieldToMessages: nextTurn,
    onCrash: (error) => crashes.push(error),
    checkEngine(engine) {
      numChecks++;
      engine.checkIntegrity();
      if (numChecks === 2) throw new Error('pages are missing');
    },
  });
  server.handle({ type: 'load', spec: TOY_SPEC });
  await nextTurn();
  async function ask(id: number): Promise<void> {
    server.handle({ type: 'generate', request: request(id) });
    for (let turn = 0; turn < 20; turn++) await nextTurn();
  }
  for (let id = 0; id < 5; id++) await ask(id);
  expect([numChecks, crashes]).toEqual([1, []]);
  nowMs = 10_000;
  await ask(5);
  expect(crashes).toEqual([expect.objectContaining({ message: 'pages are missing' })]);
});

test('loading fails with both numbers if the requested context does not fit', async () => {
  const { server, posted } = setUp(createToyModel({ limits: { numPages: 10 } }));
  server.handle({ type: 'load', spec: { ...TOY_SPEC, maxContext: 161 } });
  await nextTurn();
  expect(posted).toMatchObject([
    { type: 'loadFailed', error: { code: 'out_of_memory', data: { heldTokens: 160, maxContext: 161 } } },
  ]);
});

test('spilled pages are restored only by a model that computes the same way', async () => {
  const spill = createMemorySpill();
  const promptIds = Array.from({ length: 40 }, (_, i) => i);
  async function cachedTokens(computedBy: string): Promise<number> {
    const toy = createToyModel();
    const model = { ...toy, pages: { ...toy.pages, computedBy } };
    const posted: ServerMessage[] = [];
    const server = createEngineServer({
      post: (message) => posted.push(message),
      openModel: async () => ({ ...opened(model), spill: spill.open() }),
      createSampler: (params) => createToySampler(params.seed!),
      now: () => 0,
      yieldToMessages: nextTurn,
      onCrash: (error) =>
        posted.push({
          type: 'loadFailed',
          error: { code: 'internal', message: String(error), data: {}, isRetryable: false },
        }),
    });
    server.handle({ type: 'load', spec: TOY_SPEC });
    await nextTurn();
    server.handle({ type: 'generate', request: { ...toyRequest({ promptIds, maxTokens: 1, seed: 1 }), id: 0 } });
    const events = () => posted.flatMap((message) => (message.type === 'events' ? message.events : []));
    while (!events().some(({ type }) => type === 'finished')) await nextTurn();
    server.handle({ type: 'dispose' });
    while (posted.at(-1)?.type !== 'disposed') await nextTurn();
    const finished = events().find((event) => event.type === 'finished');
    return finished?.type === 'finished' ? finished.cachedTokens : -1;
  }
  expect(await cachedTokens('kernels a')).toBe(0);
  expect(await cachedTokens('kernels a')).toBe(32);
  expect(await cachedTokens('kernels b')).toBe(0);
});

test('[E28] compiles one grammar between two steps, however many are waiting; an abort removes one', async () => {
  const { server, posted } = setUp();
  server.handle({ type: 'load', spec: TOY_SPEC });
  await nextTurn();
  const [bytes, offsets] = [new Uint8Array(0), new Int32Array(2)];
  server.handle({ type: 'vocabulary', vocabulary: { bytes, offsets, isControl: Uint8Array.of(1), endIds: [0] } });
  server.handle({ type: 'generate', request: { ...request(0), maxTokens: 6 } });
  for (const id of [1, 2, 3, 4]) {
    const grammar = { type: 'regex', pattern: `(${id}` } as const;
    server.handle({ type: 'generate', request: { ...request(id), grammar } });
  }
  server.handle({ type: 'abort', id: 3 });
  const events = () => posted.flatMap((message) => (message.type === 'events' ? message.events : []));
  while (!events().some((event) => event.type === 'finished')) await nextTurn();
  expect(
    events()
      .map((event) => `${event.id} ${event.type}`)
      .slice(0, 6),
  ).toEqual(['0 token', '1 failed', '0 token', '2 failed', '0 token', '4 failed']);
});

test('[E49] a request that comes during a step waits for its end if its adapter must be loaded again', async () => {
  let release = (): void => {};
  const random = await loadRandom(
    { architecture: 'llama', type: 'F32', seed: 5, shape: { numLayers: 2 } },
    { limits: { maxBatchTokens: 32, maxSequences: 4, maxLogitRows: 4, numPages: 120 }, maxContextTokens: 96 },
  );
  let isSlow = false;
  const { server, posted, crashes } = setUp({
    ...random,
    async forward(batch: StepBatch) {
      if (isSlow) await new Promise<void>((resolve) => (release = resolve));
      return random.forward(batch);
    },
  } as never);
  const idsOf = (type: string): number[] =>
    posted
      .flatMap((message) => (message.type === 'events' ? message.events : []))
      .flatMap((event) => (event.type === type ? [event.id] : []));
  const wait = async (isDone: () => boolean): Promise<void> => {
    while (!isDone()) await nextTurn();
  };
  server.handle({ type: 'load', spec: { ...TOY_SPEC, maxContext: 96 } });
  await wait(() => posted.some(({ type }) => type === 'loaded'));
  // The first has to go for the others.
  for (let id = 1; id <= 30; id++) {
    server.handle({ type: 'loadAdapter', id, adapter: await randomAdapter(random.shape, { seed: id, rank: 4 }) });
  }
  isSlow = true;
  server.handle({ type: 'generate', request: request(0) });
  await nextTurn();
  const using = { adapters: [{ id: 1, scale: 1 }] };
  for (const id of [20, 21]) server.handle({ type: 'generate', request: { ...request(id), ...using } });
  server.handle({ type: 'abort', id: 21 });
  isSlow = false;
  release();
  await wait(() => idsOf('finished').includes(20));
  expect([idsOf('failed'), idsOf('finished').includes(0), idsOf('token').includes(21), crashes]).toEqual([
    [],
    true,
    false,
    [],
  ]);
});
