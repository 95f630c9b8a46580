import { expect, test } from 'vitest';
import { createToyModel, createToySampler } from '../../test/support/toy-model.ts';
import { opened, TOY_SPEC, toyRequest } from '../../test/support/toy-spec.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { LoadedModel } from '../models/types.ts';
import { createEngineServer } from './engine-server.ts';
import type { ModelSpec, ServerMessage } from './protocol.ts';
import type { EngineEvent } from './types.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const NUM_TOKENS = 12;

/** A model whose device is lost in step `lostAt`. */
function createFailing(lostAt: number): LoadedModel {
  let numSteps = 0;
  return createToyModel({
    async beforeForward() {
      if (++numSteps >= lostAt) throw new RuvLLMError('device_lost', 'the GPU device was lost');
    },
  });
}

function setUp(models: (() => LoadedModel | Promise<LoadedModel>)[]) {
  const posted: ServerMessage[] = [];
  const crashes: unknown[] = [];
  const specs: ModelSpec[] = [];
  const warnings: string[] = [];
  const server = createEngineServer({
    post: (message) => posted.push(message),
    async openModel(spec) {
      specs.push(spec);
      return { ...opened(await models[specs.length - 1]!()), warn: (message) => warnings.push(message) };
    },
    createSampler: (params) => createToySampler(params.seed!),
    now: () => 0,
    yieldToMessages: nextTurn,
    onCrash: (error) => crashes.push(error),
  });
  const events = (): EngineEvent[] => posted.flatMap((message) => (message.type === 'events' ? message.events : []));
  const isOver = (id: number): boolean => events().some((event) => event.id === id && event.type !== 'token');
  return { server, posted, crashes, specs, warnings, events, isOver };
}

const request = (id: number) => ({ ...toyRequest({ promptIds: [1, id], maxTokens: NUM_TOKENS, seed: id }), id });
const tokensOf = (events: readonly EngineEvent[], id: number): number[] =>
  events.flatMap((event) => (event.type === 'token' && event.id === id ? [event.token.tokenId] : []));

async function serve(models: (() => LoadedModel | Promise<LoadedModel>)[], ids: readonly number[]) {
  const parts = setUp(models);
  parts.server.handle({ type: 'load', spec: { ...TOY_SPEC, kernels: 'webgpu' } });
  await nextTurn();
  for (const id of ids) parts.server.handle({ type: 'generate', request: request(id) });
  while (!ids.every(parts.isOver)) await nextTurn();
  return parts;
}

test.each([1, 2, 6])('[E48] texts continue with the same tokens if the device is lost in step %i', async (lostAt) => {
  const ids = [3, 4, 5];
  const alone = await serve([() => createToyModel()], ids);
  const { events, specs, warnings, posted, crashes } = await serve(
    [() => createFailing(lostAt), () => createToyModel()],
    ids,
  );
  for (const id of ids) {
    expect(tokensOf(events(), id)).toEqual(tokensOf(alone.events(), id));
    expect(tokensOf(events(), id)).toHaveLength(NUM_TOKENS);
    expect(events().filter((event) => event.id === id && event.type === 'finished')).toHaveLength(1);
  }
  expect(specs.map(({ kernels }) => kernels)).toEqual(['webgpu', 'auto']);
  expect(warnings).toEqual(['the GPU device was lost; the model is loaded again for the processor']);
  expect(posted.filter(({ type }) => type === 'replaced')).toHaveLength(1);
  expect(crashes).toEqual([]);
});

test('[E48] requests and aborts that arrive while the model is loaded again are served', async () => {
  let finishLoading = (): void => {};
  const second = (): Promise<LoadedModel> =>
    new Promise((resolve) => (finishLoading = () => resolve(createToyModel())));
  const { server, events, isOver, specs } = setUp([() => createFailing(3), second]);
  server.handle({ type: 'load', spec: TOY_SPEC });
  await nextTurn();
  server.handle({ type: 'generate', request: request(1) });
  server.handle({ type: 'generate', request: request(2) });
  while (specs.length < 2) await nextTurn();
  server.handle({ type: 'generate', request: request(7) });
  server.handle({ type: 'abort', id: 2 });
  for (let i = 0; i < 5; i++) await nextTurn();
  expect(isOver(1)).toBe(false);
  finishLoading();
  while (!isOver(1) || !isOver(7)) await nextTurn();
  expect(tokensOf(events(), 1)).toHaveLength(NUM_TOKENS);
  expect(tokensOf(events(), 7)).toHaveLength(NUM_TOKENS);
  expect(tokensOf(events(), 2)).toHaveLength(2);
});

test('[E48] all requests fail with the loss if the model cannot be loaded again', async () => {
  const cannot = (): never => {
    throw new RuvLLMError('out_of_memory', 'too large');
  };
  const { server, events, warnings, posted } = await serve([() => createFailing(3), cannot], [1, 2]);
  expect(events().flatMap((event) => (event.type === 'failed' ? [[event.id, event.error.code]] : []))).toEqual([
    [1, 'device_lost'],
    [2, 'device_lost'],
  ]);
  expect(warnings.at(-1)).toContain('too large');
  server.handle({ type: 'generate', request: request(9) });
  expect(posted.at(-1)).toMatchObject({ events: [{ id: 9, error: { code: 'not_loaded' } }] });
});
