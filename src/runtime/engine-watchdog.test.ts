import { expect, test } from 'vitest';
import { createInProcessTransport } from '../../test/support/in-process-transport.ts';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { createToyModel } from '../../test/support/toy-model.ts';
import { opened, TOY_SPEC, toyRequest } from '../../test/support/toy-spec.ts';
import type { EngineEvent } from '../engine/types.ts';
import { createEngineClient } from './engine-client.ts';

/** A client of an engine whose steps wait for `release`; with `isStuck` they never end. */
async function setUp() {
  const clock = createManualClock();
  let release = (): void => {};
  const model = createToyModel({ beforeForward: () => new Promise((resolve) => (release = resolve)) });
  const transport = createInProcessTransport({ openModel: async () => opened(model) });
  const client = createEngineClient(transport, { stepTimeoutMs: 4000, clock });
  await client.load(TOY_SPEC, {});
  const losses: string[] = [];
  client.onLost(({ code }) => losses.push(code));
  const events: EngineEvent[] = [];
  const start = (): { abort(): void } =>
    client.generate(toyRequest({ promptIds: [1, 2], maxTokens: 50, seed: 1 }), (event) => events.push(event));
  const pass = async (ms: number): Promise<void> => {
    for (let leftMs = ms; leftMs > 0; leftMs -= 500) {
      clock.advance(500);
      await settle();
      await settle();
    }
  };
  return { clock, transport, client, losses, events, start, pass, release: () => release() };
}

test('[EW1] an engine that finishes no step in time is ended, and its requests fail', async () => {
  const { transport, client, losses, events, start, pass } = await setUp();
  start();
  await pass(4000);
  expect([events, client.isAlive]).toEqual([[], true]);
  await pass(2000);
  expect(events).toMatchObject([
    { type: 'failed', error: { code: 'engine_stalled', isRetryable: true, data: { stepTimeoutMs: 4000 } } },
  ]);
  expect([client.isAlive, transport.isClosed, losses]).toEqual([false, true, ['engine_stalled']]);
  expect(() => start()).toThrow('the engine ended');
});

test('[EW1] also when its only request was aborted meanwhile', async () => {
  const { client, start, pass } = await setUp();
  const { abort } = start();
  await pass(2000);
  abort();
  await pass(4000);
  expect(client.isAlive).toBe(false);
});

test('[EW2] slow steps, a pause of this thread and idle time are no stall', async () => {
  const { clock, client, events, start, pass, release } = await setUp();
  await pass(20_000);
  start();
  for (let i = 0; i < 5; i++) {
    await pass(3500);
    release();
    await settle();
  }
  clock.advance(100_000);
  await settle();
  release();
  await pass(3000);
  expect([client.isAlive, events.filter(({ type }) => type === 'failed')]).toEqual([true, []]);
});

test('[EW3] dispose does not wait for a stalled engine for more than 5 s', async () => {
  const { clock, transport, client, losses, start } = await setUp();
  start();
  await settle();
  const disposed = client.dispose();
  await settle();
  clock.advance(4999);
  await settle();
  expect(transport.isClosed).toBe(false);
  clock.advance(1);
  await disposed;
  expect([transport.isClosed, losses]).toEqual([true, []]);
});
