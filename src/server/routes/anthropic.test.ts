import { describe, expect, test } from 'vitest';
import type { EchoModel } from '../../../test/support/echo-model.ts';
import { createHostedEcho, createScriptedModel } from '../../../test/support/scripted-model.ts';
import { readSseEvents } from '../../../test/support/sse-events.ts';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Clock } from '../../core/clock.ts';
import { createKeyStore } from '../keys/key-store.ts';

const ask = { model: 'echo', max_tokens: 50, messages: [{ role: 'user', content: 'hello big world' }] };

function post(server: TestServer, body: unknown, path = '/v1/messages', headers: Record<string, string> = {}) {
  return server.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
      body: JSON.stringify(body),
    }),
  );
}

const serve = (model: EchoModel) => createTestServer([entryOf('echo', async () => model)]);

describe('a message, plain', () => {
  test('has all fields', async () => {
    const response = await post(serve(createHostedEcho(100)), ask);
    expect(response.status).toBe(200);
    const requestId = response.headers.get('x-request-id')!;
    expect(response.headers.get('request-id')).toBe(requestId);
    expect(await response.json()).toEqual({
      id: `msg_${requestId}`,
      type: 'message',
      role: 'assistant',
      model: 'echo',
      content: [{ type: 'text', text: 're: hello big world', citations: null }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: {
        input_tokens: 3,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: 4,
        output_tokens_details: null,
        server_tool_use: null,
        service_tier: 'standard',
        inference_geo: null,
        speed: null,
      },
    });
  });

  test('reports max_tokens, stop sequences and cached tokens', async () => {
    const cut = await post(serve(createHostedEcho(100)), { ...ask, max_tokens: 2 });
    expect(await cut.json()).toMatchObject({
      content: [{ text: 're: hello' }],
      stop_reason: 'max_tokens',
      stop_sequence: null,
      usage: { output_tokens: 2 },
    });
    const usage = {
      promptTokens: 10,
      cachedTokens: 7,
      completionTokens: 5,
      totalTokens: 15,
      reasoningTokens: 0,
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
    };
    const model = createScriptedModel(['one'], { finishReason: 'stop', stopString: 'END', usage });
    const stopped = await post(serve(model), { ...ask, stop_sequences: ['END', 'X'] });
    expect(await stopped.json()).toMatchObject({
      content: [{ text: 'one' }],
      stop_reason: 'stop_sequence',
      stop_sequence: 'END',
      usage: { input_tokens: 3, cache_read_input_tokens: 7, cache_creation_input_tokens: 0, output_tokens: 5 },
    });
    expect(model.calls[0]!.options.stop).toEqual(['END', 'X']);
  });

  test('an empty answer has no blocks', async () => {
    const response = await post(serve(createScriptedModel([])), ask);
    expect(await response.json()).toMatchObject({ content: [], stop_reason: 'end_turn' });
  });

  test('passes every parameter to the model', async () => {
    const model = createHostedEcho(100);
    const response = await post(serve(model), {
      ...ask,
      system: [
        { type: 'text', text: 'be kind', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'be brief' },
      ],
      messages: [
        { role: 'user', content: 'one' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'two' },
            { type: 'text', text: 'three' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'fo', citations: null },
            { type: 'text', text: 'ur' },
          ],
        },
        { role: 'user', content: 'five' },
      ],
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      seed: 3,
      metadata: { user_id: 'someone' },
      thinking: { type: 'disabled' },
      service_tier: 'auto',
    });
    expect(response.status).toBe(200);
    expect(model.calls[0]!.messages).toEqual([
      { role: 'system', content: 'be kind\n\nbe brief' },
      { role: 'user', content: 'one\n\ntwo\n\nthree' },
      { role: 'assistant', content: 'four' },
      { role: 'user', content: 'five' },
    ]);
    expect(model.calls[0]!.options).toMatchObject({ temperature: 0.5, topP: 0.9, topK: 7, seed: 3, maxTokens: 50 });
  });
});

describe('a message, streamed', () => {
  test('has the exact sequence of events', async () => {
    const usage = {
      promptTokens: 3,
      cachedTokens: 2,
      completionTokens: 2,
      totalTokens: 5,
      reasoningTokens: 0,
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
    };
    const model = createScriptedModel(['a', 'b\nc'], { finishReason: 'length', usage });
    const response = await post(serve(model), { ...ask, stream: true });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const events = await readSseEvents(response);
    for (const { event, data } of events) expect(data.type).toBe(event);
    expect(events[0]!.data).toMatchObject({
      type: 'message_start',
      message: {
        type: 'message',
        role: 'assistant',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 3, output_tokens: 0 },
      },
    });
    expect(events.slice(1).map(({ data }) => data as unknown)).toEqual([
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
      { type: 'ping' },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'b\nc' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'max_tokens', stop_sequence: null, stop_details: null, container: null },
        usage: {
          input_tokens: 1,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 2,
          output_tokens: 2,
          output_tokens_details: null,
          server_tool_use: null,
        },
      },
      { type: 'message_stop' },
    ]);
  });

  test('a failure is the last event', async () => {
    const broken = new RuvLLMError('kernel_failed', 'the kernel is broken');
    const server = serve(createScriptedModel(['a', broken]));
    const events = await readSseEvents(await post(server, { ...ask, stream: true }));
    expect(events.map(({ event }) => event)).toEqual([
      'message_start',
      'content_block_start',
      'ping',
      'content_block_delta',
      'error',
    ]);
    expect(events.at(-1)!.data).toMatchObject({
      type: 'error',
      error: { type: 'api_error', message: 'the kernel is broken' },
    });
    expect(server.services.admission.numRequests).toBe(0);
  });

  test('sends a ping while no event arrives', async () => {
    const rings: (() => void)[] = [];
    const clock: Clock = {
      now: () => 0,
      wallClock: () => 0,
      setTimer(delayMs, ring) {
        if (delayMs === 777) rings.push(ring);
        return () => {};
      },
    };
    const model = createHostedEcho(100);
    model.isStuck = true;
    const server = createTestServer([entryOf('echo', async () => model)], { clock, limits: { keepAliveMs: 777 } });
    const response = await post(server, { ...ask, stream: true });
    const reader = response.body!.getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value);
    for (let index = 0; index < 4; index++) await read(); // until the model blocks
    rings.at(-1)!();
    expect(await read()).toBe('event: ping\ndata: {"type":"ping"}\n\n');
    await reader.cancel();
    expect(server.services.admission.numRequests).toBe(0);
  });
});

describe('count_tokens', () => {
  const path = '/v1/messages/count_tokens';

  test('counts without generating', async () => {
    const model = createHostedEcho(100);
    const server = serve(model);
    const { max_tokens: _, ...body } = ask;
    const response = await post(server, { ...body, system: 'be kind' }, path);
    expect(await response.json()).toEqual({ input_tokens: 5 });
    expect(model.calls).toHaveLength(0);
    expect(server.services.admission.numRequests).toBe(0);
  });

  test('has no max_tokens', async () => {
    const response = await post(serve(createHostedEcho(100)), ask, path);
    expect([response.status, response.headers.get('x-ignored-fields')]).toEqual([200, 'max_tokens']);
  });
});

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } };

describe('failures', () => {
  const text = (content: unknown) => ({ ...ask, messages: [{ role: 'user', content }] });
  const tool = { name: 'add', input_schema: { type: 'object' } };

  test.each([
    [400, 'invalid_request_error', "'max_tokens' is required", { ...ask, max_tokens: null }],
    [400, 'invalid_request_error', "'messages' is required", { model: 'echo', max_tokens: 1 }],
    [400, 'invalid_request_error', "'messages' must be a list of 1 or more", { ...ask, messages: [] }],
    [404, 'not_found_error', 'the model "other" does not exist here', { ...ask, model: 'other' }],
    [400, 'invalid_request_error', 'a server of tools', { ...ask, mcp_servers: [{ type: 'url' }] }],
    [400, 'invalid_request_error', "'temperature' must be a number from 0 to 1", { ...ask, temperature: 1.5 }],
    [400, 'invalid_request_error', 'an image from "file"', text([{ type: 'image', source: { type: 'file' } }])],
    [400, 'invalid_request_error', 'a content block "document"', text([{ type: 'document', source: {} }])],
    [400, 'invalid_request_error', "only 'assistant' thinks", text([{ type: 'thinking', thinking: 'x' }])],
    [400, 'invalid_request_error', 'a content block "__proto__"', text([{ type: '__proto__' }])],
    [400, 'invalid_request_error', 'a content block "image"', { ...ask, system: [image] }],
    [400, 'invalid_request_error', 'citations', text([{ type: 'text', text: 'x', citations: [{}] }])],
    [400, 'invalid_request_error', 'a container', { ...ask, container: 'c_1' }],
    [400, 'invalid_request_error', 'a tool "bash_20250124"', { ...ask, tools: [{ ...tool, type: 'bash_20250124' }] }],
    [400, 'invalid_request_error', 'context holds|exceed|of 100', text('word '.repeat(200))],
  ])('%i %s: %s', async (status, type, message, body) => {
    const model = createHostedEcho(100);
    const response = await post(serve(model), body);
    expect(response.status).toBe(status);
    const answer = (await response.json()) as { error: { message: string } };
    expect(answer).toEqual({
      type: 'error',
      error: { type, message: expect.any(String) as string },
      request_id: response.headers.get('request-id'),
    });
    expect(message.split('|').some((part) => answer.error.message.includes(part))).toBe(true);
  });

  test('rejects bodies above the limits, and requests when overloaded', async () => {
    const limits = { maxBodyBytes: 300, maxRequestsPerTenant: 1 };
    const model = createHostedEcho(100);
    const server = createTestServer([entryOf('echo', async () => model)], { limits });
    const large = await post(server, { ...ask, system: 'x'.repeat(300) });
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({ error: { type: 'request_too_large' } });
    model.isStuck = true;
    const held = await post(server, { ...ask, stream: true });
    const refused = await post(server, ask);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ error: { type: 'rate_limit_error' } });
    await held.body!.cancel();
    server.services.admission.close();
    const closed = await post(server, ask);
    expect(closed.status).toBe(529);
    expect(closed.headers.get('retry-after')).toBe('5');
    expect(await closed.json()).toMatchObject({ error: { type: 'overloaded_error' } });
  });

  test('accepts a key in either header', async () => {
    const keys = createKeyStore(createMemoryKeys(), () => 1);
    const good = await keys.create({ name: 'a', tenant: 'a', scopes: ['inference'] });
    const weak = await keys.create({ name: 'b', tenant: 'a', scopes: ['read-only'] });
    const server = createTestServer([entryOf('echo', async () => createHostedEcho(100))], { keys, isOpen: false });
    const call = async (headers: Record<string, string>) => {
      const response = await post(server, ask, '/v1/messages', headers);
      const { error } = (await response.json()) as { error?: { type: string } };
      return [response.status, error?.type];
    };
    expect(await call({})).toEqual([401, 'authentication_error']);
    expect(await call({ 'x-api-key': 'wrong' })).toEqual([401, 'authentication_error']);
    expect(await call({ 'x-api-key': weak.token })).toEqual([403, 'permission_error']);
    expect(await call({ 'x-api-key': good.token })).toEqual([200, undefined]);
    expect(await call({ authorization: `Bearer ${good.token}` })).toEqual([200, undefined]);
  });
});
