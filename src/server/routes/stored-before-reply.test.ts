import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createHostedEcho } from '../../../test/support/scripted-model.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { StoredRecords } from '../../runtime/lower-layers.ts';

/** A server whose disk is slow: `order` shows whether the reply ended before or after the write. */
async function serve(put: (write: () => Promise<void>) => Promise<void>) {
  const memory = await openTestMemory();
  const order: string[] = [];
  const stored: StoredRecords = {
    ...memory.stored,
    put: (...args) =>
      put(async () => {
        await memory.stored.put(...args);
        order.push('stored');
      }),
  };
  const server = createTestServer([entryOf('echo', async () => createHostedEcho(100))], { memory: { ...memory, stored } }); // prettier-ignore
  const post = async (path: string, body: object): Promise<string> => {
    const response = await server.fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo', store: true, ...body }),
      }),
    );
    const text = await response.text();
    order.push('replied');
    return text;
  };
  return { post, order };
}

const slowly = async (write: () => Promise<void>): Promise<void> => {
  await sleep(20);
  await write();
};
const messages = [{ role: 'user', content: 'hello' }];

describe('[R6] answers are on disk before the last byte of the reply', () => {
  test.each([
    ['/v1/responses', { input: 'hello' }],
    ['/v1/responses', { input: 'hello', stream: true }],
    ['/v1/chat/completions', { messages }],
    ['/v1/chat/completions', { messages, stream: true }],
  ])('%s %j', async (path, body) => {
    const { post, order } = await serve(slowly);
    expect(await post(path, body)).toContain('hello');
    expect(order).toEqual(['stored', 'replied']);
  });

  test('a response that could not be stored says so', async () => {
    const { post } = await serve(() => Promise.reject(new RuvLLMError('disk_full', 'the disk is full')));
    expect(JSON.parse(await post('/v1/responses', { input: 'hello' }))).toMatchObject({ status: 'completed', store: false }); // prettier-ignore
    expect(await post('/v1/responses', { input: 'hello', stream: true })).toMatch(
      /response\.completed.*"store":false/s,
    );
  });
});
