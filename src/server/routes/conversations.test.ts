import { describe, expect, test } from 'vitest';
import type { EchoModel } from '../../../test/support/echo-model.ts';
import { hasOpenapi, violationsOf } from '../../../test/support/openapi-schemas.ts';
import { createHostedEcho, createScriptedModel } from '../../../test/support/scripted-model.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { ServerOptions } from '../app.ts';

function setUp(model: EchoModel = createHostedEcho(100), options: Partial<ServerOptions> = {}) {
  const server = createTestServer([entryOf('echo', async () => model)], options);
  const call = (method: string, path: string, body?: unknown): Promise<Response> =>
    server.fetch(
      new Request(`http://localhost/v1${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const get = async (method: string, path: string, body?: unknown, schema?: string): Promise<any> => {
    const response = await call(method, path, body);
    const answer = (await response.json()) as unknown;
    expect([response.status, answer]).toEqual([200, answer]);
    if (hasOpenapi && schema !== undefined) expect(violationsOf(schema, answer)).toEqual([]);
    return answer;
  };
  const create = (body: object = {}): Promise<any> => get('POST', '/conversations', body, 'ConversationResource');
  const list = (id: string, query = ''): Promise<any> =>
    get('GET', `/conversations/${id}/items${query}`, undefined, 'ConversationItemList');
  const answer = (conversation: unknown, input: unknown = 'hello', more: object = {}): Promise<any> =>
    get('POST', '/responses', { model: 'echo', input, conversation, ...more }, 'Response');
  return { server, model, call, get, create, list, answer };
}

const textsOf = ({ data }: any): string[] => (data as any[]).map(({ content }) => content[0].text);

describe('[R7] a conversation', () => {
  test('has metadata that can be replaced, and is deleted with its items', async () => {
    const { create, get, call } = setUp(createHostedEcho(100), {
      clock: { now: () => 0, wallClock: () => 5_000, setTimer: () => () => {} },
    });
    const { id, ...made } = await create({ metadata: { a: 'b' }, items: [{ role: 'user', content: 'hi' }] });
    expect(made).toEqual({ object: 'conversation', created_at: 5, metadata: { a: 'b' } });
    expect(await get('GET', `/conversations/${id}`)).toEqual({ id, ...made });
    expect(await get('POST', `/conversations/${id}`, { metadata: { c: 'd' } })).toMatchObject({ metadata: { c: 'd' } });
    expect(await get('GET', `/conversations/${id}`)).toMatchObject({ metadata: { c: 'd' } });
    expect(await get('POST', `/conversations/${id}`, { metadata: null })).toMatchObject({ metadata: {} });
    const gone = await get('DELETE', `/conversations/${id}`, undefined, 'DeletedConversationResource');
    expect(gone).toEqual({ id, object: 'conversation.deleted', deleted: true });
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/items'],
    ] as const) {
      const missing = await call(method, `/conversations/${id}${path}`);
      expect([missing.status, ((await missing.json()) as any).error.code]).toEqual([404, 'not_found']);
    }
  });

  test('has items that are added, listed by pages, read and deleted', async () => {
    const { create, get, call, list } = setUp();
    const { id } = await create({ items: [{ role: 'user', content: 'one' }] });
    const items = [
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'two' }] },
      { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'three' }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: '5' },
    ];
    const added = await get('POST', `/conversations/${id}/items`, { items }, 'ConversationItemList');
    expect(added).toMatchObject({ object: 'list', has_more: false, first_id: added.data[0].id });
    const ascending = await list(id, '?order=asc');
    expect(ascending.data.map(({ type }: any) => type)).toEqual([
      'message',
      'message',
      'reasoning',
      'function_call',
      'function_call_output',
    ]);
    expect(ascending.data.slice(1)).toEqual(added.data);
    const ids = ascending.data.map((item: any) => item.id) as string[];
    expect(new Set(ids).size).toBe(5);
    const page = await list(id, '?limit=2');
    expect(page).toMatchObject({ has_more: true, first_id: ids[4], last_id: ids[3] });
    expect((await list(id, `?limit=9&after=${page.last_id}`)).data.map((item: any) => item.id)).toEqual(
      ids.slice(0, 3).toReversed(),
    );
    expect(await get('GET', `/conversations/${id}/items/${ids[1]}`)).toEqual(added.data[0]);
    expect(await get('DELETE', `/conversations/${id}/items/${ids[1]}`)).toMatchObject({ id, object: 'conversation' });
    for (const method of ['GET', 'DELETE']) {
      expect((await call(method, `/conversations/${id}/items/${ids[1]}`)).status).toBe(404);
    }
    expect((await list(id)).data).toHaveLength(4);
  });

  test.each([
    ['items[0].type', { items: [{ type: 'item_reference', id: 'x' }] }],
    ['metadata', { metadata: { a: 1 } }],
    ['items', { items: 'hello' }],
  ])('with invalid %s is refused', async (param, body) => {
    const { call, create } = setUp();
    const { id } = await create();
    const response = await call('POST', '/conversations', body);
    expect([response.status, ((await response.json()) as any).error.param]).toEqual([400, param]);
    if (param === 'metadata') return;
    expect((await call('POST', `/conversations/${id}/items`, body)).status).toBe(400);
  });

  test('larger than the limit is refused, and stays as it was', async () => {
    const { call, create, list } = setUp(createHostedEcho(100), { limits: { maxStoredBytes: 5000 } });
    const items = [{ role: 'user', content: 'x'.repeat(2000) }];
    const { id } = await create({ items });
    expect((await call('POST', `/conversations/${id}/items`, { items })).status).toBe(422);
    expect((await list(id)).data).toHaveLength(1);
    const large = await call('POST', '/conversations', { items: [...items, ...items] });
    expect([large.status, ((await large.json()) as any).error.code]).toEqual([422, 'limit_exceeded']);
  });
});

describe('[R8] a response in a conversation', () => {
  test('reads its items, and appends the input and the output', async () => {
    const { model, create, answer, list } = setUp();
    const { id } = await create({ items: [{ role: 'user', content: 'one' }, { role: 'assistant', content: 'two' }] }); // prettier-ignore
    const first = await answer(id, 'three', { instructions: 'be kind' });
    expect(first.conversation).toEqual({ id });
    expect(model.calls[0]!.messages.map(({ content }) => content)).toEqual(['be kind', 'one', 'two', 'three']);
    const second = await answer({ id }, [{ role: 'user', content: 'four' }]);
    expect(model.calls[1]!.messages).toEqual([
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three' },
      { role: 'assistant', content: 're: three' },
      { role: 'user', content: 'four' },
    ]);
    const items = await list(id, '?order=asc');
    expect(textsOf(items)).toEqual(['one', 'two', 'three', 're: three', 'four', 're: four']);
    expect([items.data[3], items.data[5]]).toEqual([first.output[0], second.output[0]]);
  });

  test('appends streamed and unstored answers, and calls with their results', async () => {
    const { call, create, list, answer, model } = setUp();
    const { id } = await create();
    const stream = await call('POST', '/responses', { model: 'echo', input: 'a', conversation: id, stream: true });
    expect(await stream.text()).toContain('response.completed');
    const { id: responseId } = await answer(id, 'b', { store: false });
    expect((await call('GET', `/responses/${responseId}`)).status).toBe(404);
    const result = { type: 'function_call_output', call_id: 'c', output: '5' };
    await answer(id, [
      { role: 'user', content: 'c' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      result,
    ]);
    await answer(id, 'd');
    expect(model.calls[3]!.messages.map(({ role, content }) => `${role} ${content}`)).toEqual([
      'user a',
      'assistant re: a',
      'user b',
      'assistant re: b',
      'user c',
      'assistant ',
      'tool 5',
      'assistant re: 5',
      'user d',
    ]);
    expect((await list(id)).data).toHaveLength(10);
  });

  test('answers at the same time are both appended', async () => {
    const { create, list, answer } = setUp();
    const { id } = await create();
    await Promise.all([answer(id, 'a'), answer(id, 'b')]);
    expect(textsOf(await list(id)).sort()).toEqual(['a', 'b', 're: a', 're: b']);
  });

  test('a failed answer appends nothing', async () => {
    const model = createScriptedModel([new RuvLLMError('kernel_failed', 'the kernel is broken')]);
    const { create, call, list } = setUp(model);
    const { id } = await create();
    expect((await call('POST', '/responses', { model: 'echo', input: 'a', conversation: id })).status).toBe(500);
    expect((await list(id)).data).toEqual([]);
  });

  test('a conversation that is deleted during the answer stays deleted', async () => {
    const model = createHostedEcho(100);
    const { create, call, server } = setUp(model);
    const { id } = await create();
    const answering = call('POST', '/responses', { model: 'echo', input: 'a b c', conversation: id });
    await expect.poll(() => model.calls.length).toBe(1);
    expect((await call('DELETE', `/conversations/${id}`)).status).toBe(200);
    expect((await answering).status).toBe(200);
    await server.services.stored.close();
    expect((await call('GET', `/conversations/${id}`)).status).toBe(404);
  });

  test('an unknown conversation is a 404, and the limit of messages includes its items', async () => {
    const { create, call } = setUp(createHostedEcho(100), { limits: { maxMessages: 2 } });
    const body = { model: 'echo', input: 'a' };
    const missing = await call('POST', '/responses', { ...body, conversation: 'conv_x' });
    expect(missing.status).toBe(404);
    expect(await missing.json()).toMatchObject({ error: { code: 'conversation_not_found', param: 'conversation' } });
    const { id } = await create({ items: [{ role: 'user', content: 'a' }, { role: 'user', content: 'b' }] }); // prettier-ignore
    expect((await call('POST', '/responses', { ...body, conversation: id })).status).toBe(400);
  });
});
