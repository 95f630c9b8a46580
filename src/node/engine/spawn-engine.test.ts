import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { TOY_SPEC, toyRequest } from '../../../test/support/toy-spec.ts';
import type { EngineEvent } from '../../engine/types.ts';
import { createEngineClient } from '../../runtime/engine-client.ts';
import { spawnEngine } from './spawn-engine.ts';

/** A worker that loads, and never returns from a request. */
const STUCK = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ type }) => {
    if (type === 'load') parentPort.postMessage({ type: 'loaded', model: {} });
    if (type === 'generate') for (;;);
  });
`;

async function setUp(stepTimeoutMs: number) {
  const worker = new Worker(STUCK, { eval: true });
  const exit = new Promise<number>((resolve) => worker.once('exit', resolve));
  const client = createEngineClient(spawnEngine(worker), { stepTimeoutMs });
  await client.load(TOY_SPEC, {});
  const events: EngineEvent[] = [];
  const failed = new Promise<void>((resolve) => {
    client.generate(toyRequest({ promptIds: [1], maxTokens: 1, seed: 1 }), (event) => {
      events.push(event);
      resolve();
    });
  });
  return { client, events, exit, failed };
}

test('[EW1] the thread of a stalled engine is terminated', async () => {
  const { client, events, exit, failed } = await setUp(200);
  await failed;
  expect(events).toMatchObject([{ type: 'failed', error: { code: 'engine_stalled' } }]);
  expect(client.isAlive).toBe(false);
  await exit;
});

test('[EW3] a stuck thread ends with its model', async () => {
  const { client, events, exit } = await setUp(1e6);
  await client.dispose();
  expect(events).toMatchObject([{ type: 'failed', error: { code: 'not_loaded' } }]);
  await exit;
}, 30_000);
