// Responses, conversations and chat completions that the official client stores on a server, over restarts.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { NotFoundError } from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { createServeFolder, type ServedHere, type ServeFolder } from '../support/serve-process.ts';

const CANARY = 'quokkamarmalade';
const ask = { model: 'tiny', max_output_tokens: 4, input: `hello ${CANARY}` };
const chat = { model: 'tiny', max_tokens: 4, messages: [{ role: 'user' as const, content: `hi ${CANARY}` }] };

let folder: ServeFolder;
let tokens: Record<'alice' | 'bob', string>;
beforeEach(async () => {
  if (!isServerBuilt) return;
  folder = createServeFolder({ contextLength: 512 });
  const tokenOf = async (tenant: string): Promise<string> =>
    (await folder.here.keys('create', tenant, '--tenant', tenant)).token;
  tokens = { alice: await tokenOf('alice'), bob: await tokenOf('bob') };
});
afterEach(async () => {
  await folder?.here.stopAll();
  folder?.dispose();
});

const connect = ({ url }: ServedHere, who: 'alice' | 'bob' = 'alice'): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: tokens[who], maxRetries: 0 });

async function restart(server: ServedHere, ...args: string[]): Promise<ServedHere> {
  expect(await server.stop()).toBe(0);
  return folder.here.start(folder.model, ...args);
}

async function toList<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** One object of each type. */
async function storeAll(client: OpenAI, user = 'ann') {
  const first = await client.responses.create({ ...ask, user });
  const response = await client.responses.create({ ...ask, user, input: 'go on', previous_response_id: first.id });
  const conversation = await client.conversations.create({
    metadata: { topic: 'tea' },
    items: [{ role: 'user', content: `my name is ${CANARY}` }],
  });
  const answer = await client.responses.create({ ...ask, user, conversation: conversation.id });
  const stream = client.chat.completions.stream({ ...chat, user, store: true, metadata: { topic: 'tea' } });
  const completion = await stream.finalChatCompletion();
  return { response, conversation, answer, completion };
}

const filesWith = (text: string): string[] =>
  readdirSync(folder.data, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));

async function expectNothing(
  client: OpenAI,
  { response, conversation, completion }: Awaited<ReturnType<typeof storeAll>>,
) {
  await expect(client.responses.retrieve(response.id)).rejects.toBeInstanceOf(NotFoundError);
  await expect(client.conversations.retrieve(conversation.id)).rejects.toBeInstanceOf(NotFoundError);
  await expect(client.chat.completions.retrieve(completion.id)).rejects.toBeInstanceOf(NotFoundError);
  const continued = { ...ask, conversation: conversation.id };
  await expect(client.responses.create(continued)).rejects.toBeInstanceOf(NotFoundError);
  expect(await toList(client.chat.completions.list())).toEqual([]);
}

describe.skipIf(!isServerBuilt)('stored objects', () => {
  test('[R4] [R6] are the same after a restart for their tenant, can be continued, and are sealed on disk', async () => {
    let server = await folder.here.start(folder.model);
    const stored = await storeAll(connect(server));
    server = await restart(server);
    expect(filesWith(CANARY)).toEqual([]);
    const [client, bob] = [connect(server), connect(server, 'bob')];
    await expectNothing(bob, stored);
    await expect(bob.conversations.delete(stored.conversation.id)).rejects.toBeInstanceOf(NotFoundError);
    expect((await client.responses.retrieve(stored.response.id)).output).toEqual(stored.response.output);
    const next = await client.responses.create({ ...ask, previous_response_id: stored.response.id });
    expect(next.usage!.input_tokens).toBeGreaterThan(stored.response.usage!.input_tokens);

    expect(await client.conversations.retrieve(stored.conversation.id)).toEqual(stored.conversation);
    const third = await client.responses.create({ ...ask, input: 'third', conversation: stored.conversation.id });
    expect(third.usage!.input_tokens).toBeGreaterThan(stored.answer.usage!.input_tokens);
    const items = await toList(client.conversations.items.list(stored.conversation.id, { limit: 2, order: 'asc' }));
    expect(items.map((item) => item.type === 'message' && item.role)).toEqual([
      'user',
      'user',
      'assistant',
      'user',
      'assistant',
    ]);
    expect(items[2]).toEqual(stored.answer.output[0]);
    await client.conversations.items.delete(items[0]!.id!, { conversation_id: stored.conversation.id });

    const [completion] = await toList(client.chat.completions.list({ metadata: { topic: 'tea' } }));
    expect(completion).toMatchObject({ id: stored.completion.id, metadata: { topic: 'tea' } });
    expect(completion!.choices[0]!.message.content).toBe(stored.completion.choices[0]!.message.content);
    expect(await toList(client.chat.completions.list({ metadata: { topic: 'coffee' } }))).toEqual([]);
    await client.chat.completions.update(completion!.id, { metadata: { topic: 'coffee' } });
    await client.responses.delete(stored.response.id);

    server = await restart(server);
    const later = connect(server);
    await expect(later.responses.retrieve(stored.response.id)).rejects.toBeInstanceOf(NotFoundError);
    expect(await toList(later.conversations.items.list(stored.conversation.id))).toHaveLength(4);
    expect(await toList(later.chat.completions.list({ metadata: { topic: 'coffee' } }))).toHaveLength(1);
    expect(await toList(later.chat.completions.messages.list(completion!.id))).toMatchObject([
      { role: 'user', content: `hi ${CANARY}` },
    ]);
    await later.chat.completions.delete(completion!.id);
    await later.conversations.delete(stored.conversation.id);
    await expect(later.conversations.retrieve(stored.conversation.id)).rejects.toBeInstanceOf(NotFoundError);
  });

  test('[R6] last as long as the process without a memory', async () => {
    const server = await folder.here.start(folder.model, '--no-memory');
    const stored = await storeAll(connect(server));
    expect(await toList(connect(server).chat.completions.list())).toHaveLength(1);
    await expectNothing(connect(await restart(server, '--no-memory')), stored);
  });

  test('[OP11] are erased with their tenant, user or request, also without a server', async () => {
    let server = await folder.here.start(folder.model);
    const [ann, ben] = [await storeAll(connect(server)), await storeAll(connect(server), 'ben')];
    const bobs = await storeAll(connect(server, 'bob'));
    await server.stop();
    const erase = (...more: string[]) =>
      folder.here.run('memory', 'erase-tenant', 'alice', '--confirm', 'alice', ...more);
    expect((await erase('--user', 'ann')).status).toBe(0);
    server = await folder.here.start(folder.model);
    const client = connect(server);
    await expect(client.responses.retrieve(ann.response.id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(client.conversations.retrieve(ann.conversation.id)).rejects.toBeInstanceOf(NotFoundError);
    expect((await toList(client.chat.completions.list())).map(({ id }) => id)).toEqual([ben.completion.id]);
    await client.conversations.retrieve(ben.conversation.id);

    const root = (await folder.here.keys('create', 'root', '--scope', 'admin')).token;
    const reply = await fetch(`${server.url}/admin/memory/tenants/erase?tenant=alice`, {
      method: 'POST',
      headers: { authorization: `Bearer ${root}`, 'content-type': 'application/json' },
      body: JSON.stringify({ confirm: 'alice' }),
    });
    expect(reply.status).toBe(200);
    const { parts } = (await reply.json()) as { parts: { name: string; numFound: number; numLeft: number }[] };
    expect(parts.find(({ name }) => name === 'stored objects')).toEqual({
      name: 'stored objects',
      numFound: 5,
      numLeft: 0,
    });
    await expectNothing(client, ben);
    await connect(server, 'bob').conversations.retrieve(bobs.conversation.id);
  });
});
