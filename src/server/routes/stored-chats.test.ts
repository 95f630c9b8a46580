import { describe, expect, test } from 'vitest';
import { hasOpenapi, violationsOf } from '../../../test/support/openapi-schemas.ts';
import { createHostedEcho, createScriptedModel } from '../../../test/support/scripted-model.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { RuvLLMError } from '../../core/errors.ts';

function setUp(model = createHostedEcho(100)) {
  const clock = createManualClock();
  const entries = [entryOf('echo', async () => model), entryOf('other', async () => createHostedEcho(100))];
  const { fetch } = createTestServer(entries, { clock });
  const call = (method: string, path = '', body?: unknown): Promise<Response> =>
    fetch(
      new Request(`http://localhost/v1/chat/completions${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const get = async (method: string, path: string, body?: unknown, schema?: string): Promise<any> => {
    const response = await call(method, path, body);
    expect(response.status).toBe(200);
    const answer = (await response.json()) as unknown;
    if (hasOpenapi && schema !== undefined) expect(violationsOf(schema, answer)).toEqual([]);
    return answer;
  };
  const ask = (text: string, more: object = {}): Promise<any> => {
    clock.advance(1);
    return get('POST', '', { model: 'echo', messages: [{ role: 'user', content: text }], store: true, ...more });
  };
  const list = async (query = ''): Promise<any> => get('GET', query, undefined, 'ChatCompletionList');
  return { call, get, ask, list };
}

const textsOf = ({ data }: any): string[] => (data as any[]).map(({ choices }) => choices[0].message.content);

describe('[R9] a chat completion with "store"', () => {
  test('can be read, changed and deleted', async () => {
    const { ask, get, call } = setUp();
    const answer = await ask('hello', { metadata: { a: 'b' } });
    expect(await get('GET', `/${answer.id}`, undefined, 'CreateChatCompletionResponse')).toEqual({
      ...answer,
      metadata: { a: 'b' },
    });
    const changed = await get('POST', `/${answer.id}`, { metadata: { c: 'd' } });
    expect(changed).toEqual({ ...answer, metadata: { c: 'd' } });
    expect(await get('GET', `/${answer.id}`)).toEqual(changed);
    expect(await get('DELETE', `/${answer.id}`, undefined, 'ChatCompletionDeleted')).toEqual({
      id: answer.id,
      object: 'chat.completion.deleted',
      deleted: true,
    });
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/messages'],
    ] as const) {
      const missing = await call(method, `/${answer.id}${path}`);
      expect([missing.status, ((await missing.json()) as any).error.code]).toEqual([404, 'not_found']);
    }
  });

  test('is stored from a stream as well, before the stream ends', async () => {
    const { ask, call, get } = setUp();
    const plain = await ask('hello big world', { n: 2, logprobs: true });
    const body = { model: 'echo', messages: [{ role: 'user', content: 'hello big world' }], n: 2, logprobs: true };
    const stream = await call('POST', '', { ...body, store: true, stream: true });
    const text = await stream.text();
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    const { id } = JSON.parse(/^data: (.*)$/m.exec(text)![1]!) as { id: string };
    const stored = await get('GET', `/${id}`);
    expect([stored.choices, stored.usage]).toEqual([plain.choices, plain.usage]);
  });

  test('has the messages of its request', async () => {
    const { ask, get } = setUp();
    const messages = [
      { role: 'system', content: 'be kind' },
      { role: 'user', name: 'ann', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c', content: '5' },
      { role: 'user', content: 'on' },
    ];
    const { id } = await ask('', { messages });
    // OpenAI's schema allows only assistants here, its examples have users.
    const all = await get('GET', `/${id}/messages`);
    expect(all.data.map((message: any) => [message.id, message.role, message.content])).toEqual([
      [`${id}-0`, 'system', 'be kind'],
      [`${id}-1`, 'user', 'hi'],
      [`${id}-2`, 'assistant', ''],
      [`${id}-3`, 'tool', '5'],
      [`${id}-4`, 'user', 'on'],
    ]);
    expect(all.data[2].tool_calls).toEqual(messages[2]!.tool_calls);
    const page = await get('GET', `/${id}/messages?limit=2&after=${id}-1`);
    expect(page).toMatchObject({ has_more: true, first_id: `${id}-2`, last_id: `${id}-3` });
  });

  test('is listed by pages, model and metadata, the oldest first', async () => {
    const { ask, list, get } = setUp();
    const ids: string[] = [];
    for (const [text, more] of [
      ['a', { metadata: { kind: 'x' } }],
      ['b', { model: 'other' }],
      ['c', { metadata: { kind: 'x', more: '1' } }],
    ] as const) {
      ids.push(((await ask(text, more)) as { id: string }).id);
    }
    await ask('unstored', { store: false });
    await ask('without', { store: null });
    await get('POST', `/${ids[0]}`, { metadata: { kind: 'x' } }); // a change does not move it
    expect(textsOf(await list())).toEqual(['re: a', 're: b', 're: c']);
    const page = await list('?limit=2&order=desc');
    expect(page).toMatchObject({ has_more: true, first_id: ids[2], last_id: ids[1] });
    expect(textsOf(await list(`?order=desc&after=${page.last_id}`))).toEqual(['re: a']);
    expect(textsOf(await list('?model=other'))).toEqual(['re: b']);
    expect(textsOf(await list('?metadata[kind]=x'))).toEqual(['re: a', 're: c']);
    expect(textsOf(await list('?metadata%5Bkind%5D=x&metadata%5Bmore%5D=1'))).toEqual(['re: c']);
    expect((await list('?metadata[toString]=x')).data).toEqual([]);
  });

  test('is not stored if it fails or its client leaves', async () => {
    const broken = setUp(createScriptedModel(['a', new RuvLLMError('kernel_failed', 'the kernel is broken')]));
    const body = { model: 'echo', messages: [{ role: 'user', content: 'a' }], store: true, stream: true };
    await (await broken.call('POST', '', body)).text();
    expect((await broken.list()).data).toEqual([]);
    const model = createHostedEcho(100);
    model.isStuck = true;
    const left = setUp(model);
    await (await left.call('POST', '', body)).body!.cancel();
    expect((await left.list()).data).toEqual([]);
  });
});
