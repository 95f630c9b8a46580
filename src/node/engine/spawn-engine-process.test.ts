import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { TOY_SPEC, toyRequest } from '../../../test/support/toy-spec.ts';
import type { EngineEvent } from '../../engine/types.ts';
import { createEngineClient } from '../../runtime/engine-client.ts';
import { spawnEngineProcess } from './spawn-engine-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-engine-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A process that loads, and does `onGenerate` at a request. */
function setUp(onGenerate: string) {
  const path = join(folder, 'engine.cjs');
  writeFileSync(
    path,
    `process.on('message', ({ type }) => {
      if (type === 'load') process.send({ type: 'loaded', model: {} });
      if (type === 'generate') ${onGenerate}
    });`,
  );
  const child = fork(path, { execArgv: [], serialization: 'advanced' });
  const exit = new Promise<string | null>((resolve) => child.once('exit', (_, signal) => resolve(signal)));
  return { client: createEngineClient(spawnEngineProcess(child)), exit };
}

const CALL = toyRequest({ promptIds: [1], maxTokens: 1, seed: 1 });

test('[EW4] a process that ends fails its requests with a retryable error', async () => {
  const { client, exit } = setUp('process.kill(process.pid, "SIGSEGV");');
  await client.load(TOY_SPEC, {});
  const event = await new Promise<EngineEvent>((resolve) => client.generate(CALL, resolve));
  expect(event).toMatchObject({
    type: 'failed',
    error: { code: 'engine_crashed', isRetryable: true, data: { signal: 'SIGSEGV' } },
  });
  expect(client.isAlive).toBe(false);
  expect(() => client.generate(CALL, () => {})).toThrow(/the engine ended/);
  await exit;
});

test('[EW3] a stuck process is killed with its model', async () => {
  const { client, exit } = setUp('for (;;);');
  await client.load(TOY_SPEC, {});
  client.generate(CALL, () => {});
  await client.dispose();
  expect(await exit).toBe('SIGKILL');
}, 30_000);

test('[EW4] arrays in shared memory arrive as copies', async () => {
  const path = join(folder, 'echo.cjs');
  writeFileSync(path, `process.on('message', ({ table }) => process.send({ type: 'loadFailed', error: table }));`);
  const transport = spawnEngineProcess(fork(path, { execArgv: [], serialization: 'advanced' }));
  const shared = new Int32Array(new SharedArrayBuffer(8));
  shared.set([1, 2]);
  const echo = new Promise<unknown>((resolve) => transport.onMessage(resolve));
  transport.post({ type: 'tokenTable', table: { shared } as never });
  expect(await echo).toEqual({ type: 'loadFailed', error: { shared: Int32Array.of(1, 2) } });
  await transport.close();
});
