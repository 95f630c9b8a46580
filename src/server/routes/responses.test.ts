import { describe, expect, test } from 'vitest';
import type { EchoModel } from '../../../test/support/echo-model.ts';
import { hasOpenapi, violationsOf } from '../../../test/support/openapi-schemas.ts';
import { createHostedEcho, createScriptedModel } from '../../../test/support/scripted-model.ts';
import { readSseEvents } from '../../../test/support/sse-events.ts';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createKeyStore } from '../keys/key-store.ts';

const ask = { model: 'echo', input: 'hello big world' };

const serve = (model: EchoModel) => createTestServer([entryOf('echo', async () => model)]);

function call(server: TestServer, method: string, path: string, body?: unknown, token?: string): Promise<Response> {
  return server.fetch(
    new Request(`http://localhost/v1/responses${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
}
const post = (server: TestServer, body: unknown, token?: string) => call(server, 'POST', '', body, token);

async function created(server: TestServer, body: unknown, token?: string): Promise<any> {
  const response = await post(server, body, token);
  expect(response.status).toBe(200);
  const answer = (await response.json()) as unknown;
  if (hasOpenapi) expect(violationsOf('Response', answer)).toEqual([]);
  return answer;
}

describe('a response, plain', () => {
  test('has all fields', async () => {
    const server = createTestServer([entryOf('echo', async () => createHostedEcho(100))], {
      clock: { now: () => 0, wallClock: () => 5_000, setTimer: () => () => {} },
    });
    const answer = await created(server, { ...ask, metadata: { a: 'b' }, user: 'me', temperature: 0.5 });
    const uuid = (answer.id as string).slice('resp_'.length);
    expect(answer).toEqual({
      id: `resp_${uuid}`,
      object: 'response',
      created_at: 5,
      completed_at: 5,
      status: 'completed',
      error: null,
      incomplete_details: null,
      background: false,
      instructions: null,
      max_output_tokens: null,
      max_tool_calls: null,
      metadata: { a: 'b' },
      parallel_tool_calls: true,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      service_tier: 'default',
      store: true,
      temperature: 0.5,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_logprobs: 0,
      top_p: 1,
      truncation: 'disabled',
      user: 'me',
      model: 'echo',
      output: [
        {
          id: `msg_${uuid}_0`,
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: 're: hello big world', annotations: [], logprobs: [] }],
        },
      ],
      usage: {
        input_tokens: 3,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 4,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 7,
      },
    });
  });

  test('is incomplete at max_output_tokens', async () => {
    const answer = await created(serve(createHostedEcho(100)), { ...ask, max_output_tokens: 2 });
    expect(answer).toMatchObject({
      status: 'incomplete',
      completed_at: null,
      incomplete_details: { reason: 'max_output_tokens' },
      max_output_tokens: 2,
      output: [{ status: 'incomplete', content: [{ text: 're: hello' }] }],
    });
  });

  test('reports cached tokens; an empty answer is an empty text', async () => {
    const usage = {
      promptTokens: 10,
      cachedTokens: 7,
      completionTokens: 0,
      totalTokens: 10,
      reasoningTokens: 0,
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
    };
    const answer = await created(serve(createScriptedModel([], { usage })), ask);
    expect(answer.usage).toMatchObject({ input_tokens: 10, input_tokens_details: { cached_tokens: 7 } });
    expect(answer.output).toMatchObject([{ type: 'message', content: [{ type: 'output_text', text: '' }] }]);
  });

  test('passes items, instructions and sampling to the model', async () => {
    const model = createHostedEcho(100);
    await created(serve(model), {
      model: 'echo',
      instructions: 'be kind',
      input: [
        { role: 'developer', content: 'rules' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_text', text: 'b' },
          ],
        },
        {
          type: 'message',
          id: 'msg_1',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'c', annotations: [], logprobs: [] }],
        },
        { role: 'user', content: 'd' },
      ],
      top_p: 0.5,
      seed: 9,
      max_output_tokens: 20,
      text: { format: { type: 'text' }, verbosity: 'low' },
      reasoning: { effort: null },
      background: false,
      include: ['reasoning.encrypted_content'],
    });
    expect(model.calls[0]!.messages).toEqual([
      { role: 'system', content: 'be kind' },
      { role: 'developer', content: 'rules' },
      { role: 'user', content: 'ab' },
      { role: 'assistant', content: 'c' },
      { role: 'user', content: 'd' },
    ]);
    expect(model.calls[0]!.options).toMatchObject({ topP: 0.5, seed: 9, maxTokens: 20 });
    expect(model.calls[0]!.options.topLogprobs).toBeUndefined();
  });
});

describe('a response, streamed', () => {
  /** The OpenAPI component of an event. */
  const SCHEMAS: Readonly<Record<string, string>> = {
    'response.created': 'ResponseCreatedEvent',
    'response.in_progress': 'ResponseInProgressEvent',
    'response.output_item.added': 'ResponseOutputItemAddedEvent',
    'response.content_part.added': 'ResponseContentPartAddedEvent',
    'response.output_text.delta': 'ResponseTextDeltaEvent',
    'response.output_text.done': 'ResponseTextDoneEvent',
    'response.content_part.done': 'ResponseContentPartDoneEvent',
    'response.output_item.done': 'ResponseOutputItemDoneEvent',
    'response.completed': 'ResponseCompletedEvent',
    'response.incomplete': 'ResponseIncompleteEvent',
    'response.failed': 'ResponseFailedEvent',
  };

  async function stream(server: TestServer, body: object) {
    const events = await readSseEvents(await post(server, { ...body, stream: true }));
    events.forEach(({ event, data }, index) => {
      expect(data.type).toBe(event);
      expect(data.sequence_number).toBe(index);
      if (hasOpenapi) expect(violationsOf(SCHEMAS[event]!, data), event).toEqual([]);
    });
    return events;
  }

  test('has the exact sequence of events, ending with the whole response', async () => {
    const server = serve(createScriptedModel(['a', 'b\nc']));
    const events = await stream(server, ask);
    expect(events.map(({ event }) => event)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const { response } = events.at(-1)!.data;
    const item = response.output[0] as { id: string; content: object[] };
    const place = { item_id: item.id, output_index: 0, content_index: 0 };
    expect(events[0]!.data.response).toMatchObject({ id: response.id as string, status: 'in_progress', output: [] });
    expect(events[2]!.data).toMatchObject({
      output_index: 0,
      item: { id: item.id, status: 'in_progress', content: [] },
    });
    expect(events[3]!.data).toMatchObject({ ...place, part: { type: 'output_text', text: '' } });
    expect(events[5]!.data).toMatchObject({ ...place, delta: 'b\nc', logprobs: [] });
    expect(events[6]!.data).toMatchObject({ ...place, text: 'ab\nc' });
    expect(events[7]!.data.part).toEqual(item.content[0]);
    expect(events[8]!.data.item).toEqual(item);
    expect(response).toMatchObject({ status: 'completed', usage: { input_tokens: 3 } });
    const stored = await call(server, 'GET', `/${response.id as string}`);
    expect(await stored.json()).toEqual(response);
  });

  test('ends incomplete at the limit', async () => {
    const events = await stream(serve(createHostedEcho(100)), { ...ask, max_output_tokens: 1 });
    expect(events.at(-2)!.data.item.status).toBe('incomplete');
    expect(events.at(-1)!.event).toBe('response.incomplete');
    expect(events.at(-1)!.data.response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
  });

  test('a failure is an event, and nothing is stored', async () => {
    const server = serve(createScriptedModel(['a', new RuvLLMError('kernel_failed', 'the kernel is broken')]));
    const events = await stream(server, ask);
    expect(events.at(-1)!.event).toBe('response.failed');
    const { response } = events.at(-1)!.data;
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'the kernel is broken' },
    });
    expect((await call(server, 'GET', `/${response.id as string}`)).status).toBe(404);
    expect(server.services.admission.numRequests).toBe(0);
  });

  test('a client that leaves ends it, and nothing is stored', async () => {
    const model = createHostedEcho(100);
    model.isStuck = true;
    const server = serve(model);
    const response = await post(server, { ...ask, stream: true });
    await response.body!.cancel();
    expect(model.calls[0]!.options.signal!.aborted).toBe(true);
    expect(server.services.admission.numRequests).toBe(0);
    expect(server.services.stored.numBytes).toBe(0);
  });
});

describe('stored responses', () => {
  test('an id continues the conversation, without its instructions', async () => {
    const model = createHostedEcho(100);
    const server = serve(model);
    const first = await created(server, { ...ask, instructions: 'be kind' });
    const second = await created(server, { model: 'echo', input: 'and you', previous_response_id: first.id });
    expect(second.previous_response_id).toBe(first.id);
    expect(model.calls[1]!.messages).toEqual([
      { role: 'user', content: 'hello big world' },
      { role: 'assistant', content: 're: hello big world' },
      { role: 'user', content: 'and you' },
    ]);
    // The first can be deleted, because the second contains it.
    const gone = await call(server, 'DELETE', `/${first.id as string}`);
    expect(await gone.json()).toEqual({ id: first.id as string, object: 'response', deleted: true });
    await created(server, { model: 'echo', input: 'third', previous_response_id: second.id });
    expect(model.calls[2]!.messages.map(({ content }) => content)).toEqual([
      'hello big world',
      're: hello big world',
      'and you',
      're: and you',
      'third',
    ]);
    for (const method of ['GET', 'DELETE']) {
      const missing = await call(server, method, `/${first.id as string}`);
      expect(missing.status).toBe(404);
      expect(await missing.json()).toMatchObject({ error: { code: 'not_found', type: 'invalid_request_error' } });
    }
  });

  test('store: false stores nothing', async () => {
    const server = serve(createHostedEcho(100));
    const { id, store } = await created(server, { ...ask, store: false });
    expect(store).toBe(false);
    expect((await call(server, 'GET', `/${id as string}`)).status).toBe(404);
    const next = await post(server, { ...ask, previous_response_id: id as string });
    expect(next.status).toBe(404);
    expect(await next.json()).toMatchObject({
      error: { code: 'previous_response_not_found', param: 'previous_response_id' },
    });
  });

  test("[K4] another tenant's response is not found", async () => {
    const keys = createKeyStore(createMemoryKeys(), () => 1);
    const tokenOf = async (tenant: string) =>
      (await keys.create({ name: tenant, tenant, scopes: ['inference'] })).token;
    const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')];
    const server = createTestServer([entryOf('echo', async () => createHostedEcho(100))], { keys, isOpen: false });
    const { id } = await created(server, ask, alice);
    expect((await call(server, 'GET', `/${id as string}`, undefined, bob)).status).toBe(404);
    expect((await call(server, 'DELETE', `/${id as string}`, undefined, bob)).status).toBe(404);
    expect((await post(server, { ...ask, previous_response_id: id as string }, bob)).status).toBe(404);
    expect((await call(server, 'GET', `/${id as string}`, undefined, alice)).status).toBe(200);
  });

  test('the limit of messages includes the earlier ones', async () => {
    const server = createTestServer([entryOf('echo', async () => createHostedEcho(100))], {
      limits: { maxMessages: 2 },
    });
    const { id } = await created(server, ask);
    expect((await post(server, { ...ask, previous_response_id: id as string })).status).toBe(400);
  });
});

describe('refusals', () => {
  const part = (type: string) => ({ ...ask, input: [{ role: 'user', content: [{ type, text: 'x' }] }] });
  test.each([
    ["'input' is required", { model: 'echo' }, 'input'],
    ["'input' must be a string or a list", { model: 'echo', input: [] }, 'input'],
    ['a content part "input_file"', part('input_file'), 'input[0].content[0].type'],
    ['an input item "item_reference"', { ...ask, input: [{ type: 'item_reference', id: 'x' }] }, 'input[0].type'],
    ['an input item "__proto__"', { ...ask, input: [{ type: '__proto__' }] }, 'input[0].type'],
    ['a tool "web_search"', { ...ask, tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    ["'reasoning.effort' must be one of", { ...ask, reasoning: { effort: 'x' } }, 'reasoning.effort'],
    ['in the background', { ...ask, background: true }, 'background'],
    ["'conversation' must be left out if", { ...ask, conversation: 'a', previous_response_id: 'b' }, 'conversation'],
    ["'conversation' must be an object", { ...ask, conversation: 5 }, 'conversation'],
    ["'conversation.id' is required", { ...ask, conversation: {} }, 'conversation.id'],
    ["'truncation' must be one of disabled, auto", { ...ask, truncation: 'x' }, 'truncation'],
    ["'metadata' must be an object of at most 16", { ...ask, metadata: { a: 1 } }, 'metadata'],
    ["'max_output_tokens' must be a positive integer", { ...ask, max_output_tokens: 0 }, 'max_output_tokens'],
  ])('%s', async (message, body, param) => {
    const model = createHostedEcho(100);
    const response = await post(serve(model), body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string; param: string } };
    expect(error.message).toContain(message);
    expect(error.param).toBe(param);
    expect(model.calls).toHaveLength(0);
  });

  test('settings that no template has are ignored', async () => {
    const more = { truncation: 'auto', reasoning: { effort: 'high', summary: 'detailed' }, context_management: [{}] };
    const response = await post(serve(createHostedEcho(100)), { ...ask, ...more, messages: [] });
    expect([response.status, response.headers.get('x-ignored-fields')]).toEqual([200, 'messages, reasoning.summary']);
  });

  test('a stored response cannot be streamed', async () => {
    const server = serve(createHostedEcho(100));
    const { id } = await created(server, ask);
    expect((await call(server, 'GET', `/${id as string}?stream=true`)).status).toBe(400);
  });
});
