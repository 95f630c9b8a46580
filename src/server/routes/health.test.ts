import { expect, test } from 'vitest';
import { settle } from '../../../test/support/manual-clock.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../../runtime/model.ts';

const messages = [{ role: 'user', content: 'hi' }];

test('[M12] a stalled engine fails its requests, /health is a 503 until it is replaced, and the next request is served', async () => {
  const runtimes = [await createToyRuntime({ beforeForward: () => new Promise(() => {}) }), await createToyRuntime()];
  let finishLoad = (): void => {};
  let numLoads = 0;
  const server = createTestServer([
    entryOf('toy', async (): Promise<Model> => {
      if (numLoads === 1) await new Promise<void>((resolve) => (finishLoad = resolve));
      return runtimes[numLoads++]!.model;
    }),
  ]);
  const health = async (): Promise<[number, string]> => {
    const response = await server.fetch(new Request('http://localhost/health'));
    return [response.status, ((await response.json()) as { status: string }).status];
  };
  const ask = (): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'toy', messages, max_tokens: 2 }),
      }),
    );
  const stuck = ask();
  while (runtimes[0]!.transport.sent.every(({ type }) => type !== 'generate')) await settle();
  expect(await health()).toEqual([200, 'ok']);
  runtimes[0]!.transport.lose(new RuvLLMError('engine_stalled', 'no step for 120 s', { isRetryable: true }));
  const failed = await stuck;
  expect([failed.status, failed.headers.get('retry-after'), await failed.json()]).toMatchObject([
    503,
    '10',
    { error: { code: 'engine_stalled' } },
  ]);
  expect(await health()).toEqual([503, 'replacing a stalled engine']);
  await settle();
  finishLoad();
  while ((await health())[0] !== 200) await settle();
  expect((await ask()).status).toBe(200);
  expect(numLoads).toBe(2);
});
