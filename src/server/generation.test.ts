import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime, saying, type ToyRuntimeOptions } from '../../test/support/toy-runtime.ts';
import { createToyTokenizer } from '../../test/support/toy-tokenizer.ts';
import type { ServerOptions } from './app.ts';
import type { ServerLimits } from './limits.ts';
import type { LogFields } from './logger.ts';

interface Choice {
  index: number;
  message: { content: string };
  finish_reason: string;
}
interface Answer {
  choices: Choice[];
  usage: { prompt_tokens: number; completion_tokens: number };
  error: { message: string; type: string; param: string | null; code: string };
}

async function setUp(
  options: ToyRuntimeOptions = {},
  limits: Partial<ServerLimits> = {},
  more: Partial<ServerOptions> = {},
) {
  const runtime = await createToyRuntime(options);
  const logs: { event: string; fields: LogFields }[] = [];
  const server = createTestServer([entryOf('toy', async () => runtime.model)], {
    limits,
    ...more,
    logger: { log: (_level, event, fields) => void logs.push({ event, fields }) },
  });
  const post = (path: string, body: object, signal?: AbortSignal): Promise<Response> =>
    server.fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
  const chat = (more: object = {}, signal?: AbortSignal): Promise<Response> =>
    post('/v1/chat/completions', { model: 'toy', messages: [{ role: 'user', content: 'hi' }], ...more }, signal);
  const ask = async (more: object = {}) => {
    const response = await chat(more);
    return { status: response.status, ...((await response.json()) as Answer) };
  };
  const expectIdle = async (): Promise<void> => {
    while ((await runtime.model.stats()).numRunning > 0);
    expect(await runtime.model.stats()).toMatchObject({ numRunning: 0, numWaiting: 0, numFreePages: 64 });
    expect(server.services.admission.numRequests).toBe(0);
    expect(server.services.models.find('toy')!.numUsers).toBe(0);
  };
  return { ...runtime, server, post, chat, ask, logs, expectIdle };
}

test("returns the library's answer for the same options", async () => {
  const { model, ask, expectIdle } = await setUp();
  const given = { seed: 5, max_tokens: 40, temperature: 1, top_p: 1, stop: 'q' };
  const { choices, usage } = await ask(given);
  const result = await model.generate([{ role: 'user', content: 'hi' }], {
    seed: 5,
    maxTokens: 40,
    temperature: 1,
    topP: 1,
    stop: ['q'],
  });
  expect(choices[0]).toMatchObject({ message: { content: result.text }, finish_reason: result.finishReason });
  expect(usage).toMatchObject({ completion_tokens: result.usage.completionTokens });
  await expectIdle();
});

test('[G4] several answers have their own seeds, and the prompt counts once', async () => {
  const { ask } = await setUp();
  const { choices, usage } = await ask({ seed: 5, n: 3, max_tokens: 30 });
  expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
  const alone = await Promise.all([5, 6, 7].map((seed) => ask({ seed, max_tokens: 30 })));
  expect(choices.map(({ message }) => message.content)).toEqual(
    alone.map((answer) => answer.choices[0]!.message.content),
  );
  expect(new Set(choices.map(({ message }) => message.content)).size).toBe(3);
  expect(usage.prompt_tokens).toBe(alone[0]!.usage.prompt_tokens);
  expect(usage.completion_tokens).toBe(alone.reduce((sum, answer) => sum + answer.usage.completion_tokens, 0));
});

test('[G5] an answer without a limit may fill the context', async () => {
  const ids = createToyTokenizer().encode('a'.repeat(2000));
  const { ask, model } = await setUp({ createSampler: saying(ids) });
  const { choices, usage } = await ask();
  expect(usage.prompt_tokens + usage.completion_tokens).toBe(model.modelInfo().maxContext);
  expect(choices[0]!.finish_reason).toBe('length');
});

test('[G7] encodes a prompt once, even without a limit and in a stream that starts with its tokens', async () => {
  const { ask, post, tokenizer } = await setUp();
  let numCalls = 0;
  const encode = tokenizer.encodeTemplate;
  tokenizer.encodeTemplate = (text, options) => {
    numCalls++;
    return encode(text, options);
  };
  const { usage } = await ask();
  expect(numCalls).toBe(1);
  const messages = [{ role: 'user', content: 'hi' }];
  const response = await post('/v1/messages', { model: 'toy', max_tokens: 4, stream: true, messages });
  const text = await response.text();
  expect(numCalls).toBe(2);
  expect(text.split('\n\n')[0]).toContain(`"input_tokens":${usage.prompt_tokens}`);
});

test('[S4] rejects unsupported features by name', async () => {
  const { ask, expectIdle } = await setUp();
  const tool = { type: 'function', function: { name: 'f' } };
  for (const [more, param, word] of [
    [{ messages: [{ role: 'user', content: 'x', audio: { id: 'a' } }] }, 'messages[0].audio', 'audio'],
    [{ structured_outputs: { structural_tag: {} } }, 'structured_outputs.structural_tag', 'structural tag'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x.y/z' } }] }] },
      'messages[0].content[0].image_url.url',
      'images are not fetched',
    ],
  ] as const) {
    const { status, error } = await ask(more);
    expect({ status, code: error.code, param: error.param }, word).toEqual({ status: 400, code: 'unsupported', param });
    expect(error.message).toContain(word);
  }
  expect((await ask({ tools: [tool], tool_choice: 'none', max_tokens: 1 })).status).toBe(200);
  await expectIdle();
});

test('[S4] rejects values by name, unknown fields if the server is strict, and accepts fields without effect', async () => {
  const { ask } = await setUp({}, {}, { strict: true });
  for (const [more, param, code, status] of [
    [{ temprature: 1 }, 'temprature', 'unknown_parameter', 400],
    [JSON.parse('{"__proto__":{"isAdmin":true}}'), '__proto__', 'unknown_parameter', 400],
    [{ constructor: {} }, 'constructor', 'unknown_parameter', 400],
    [{ n: 1e6 }, 'n', 'limit_exceeded', 422],
    [{ n: 1.5 }, 'n', 'invalid_value', 400],
    [{ max_tokens: -2 }, 'max_tokens', 'invalid_value', 400],
    [{ max_tokens: '5' }, 'max_tokens', 'invalid_value', 400],
    [{ temperature: 2.1 }, 'temperature', 'invalid_value', 400],
    [{ top_logprobs: 2 }, 'top_logprobs', 'invalid_value', 400],
    [{ stream_options: { include_usage: true } }, 'stream_options', 'invalid_value', 400],
    [{ logit_bias: { x: 1 } }, 'logit_bias', 'invalid_value', 400],
    [{ logit_bias: { 5000: 1 }, max_tokens: 1 }, 'logit_bias', 'invalid_token', 400],
    [{ messages: [] }, 'messages', 'invalid_value', 400],
    [{ messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role', 'invalid_value', 400],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content', 'missing_required_parameter', 400],
    [{ model: 'nope' }, 'model', 'model_not_found', 404],
    [{ stop: [''] }, 'stop', 'invalid_value', 400],
    [{ chat_template_kwargs: { messages: [] } }, 'chat_template_kwargs', 'invalid_value', 400],
    [{ chat_template_kwargs: { add_generation_prompt: false } }, 'chat_template_kwargs', 'invalid_value', 400],
    [{ reasoning_effort: 'a lot' }, 'reasoning_effort', 'invalid_value', 400],
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools', 'invalid_value', 400],
    [{ tool_choice: 'required' }, 'tool_choice', 'invalid_value', 400],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].tool_call_id', 'missing_required_parameter', 400],
    [
      { messages: [{ role: 'user', content: 'x', tool_calls: [{ id: 'a', type: 'function', function: {} }] }] },
      'messages[0].tool_calls[0].function.name',
      'missing_required_parameter',
      400,
    ],
    [
      { messages: [{ role: 'user', content: 'x', reasoning_content: 'y' }] },
      'messages[0].reasoning_content',
      'invalid_value',
      400,
    ],
    [{ modalities: ['audio'] }, 'modalities', 'invalid_value', 400],
    [{ metadata: 'x' }, 'metadata', 'invalid_value', 400],
  ] as const) {
    const { status: got, error } = await ask(more as object);
    expect({ status: got, param: error?.param, code: error?.code }, JSON.stringify(more)).toEqual({
      status,
      param,
      code,
    });
  }
  const harmless = { user: 'u', metadata: { a: 'b' }, store: false, service_tier: 'auto', n: null, stop: null };
  expect((await ask({ ...harmless, max_tokens: 1 })).status).toBe(200);
  expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
});

test('[G1] a prompt longer than the context is a 400 with both numbers, also for a stream', async () => {
  const { ask, chat, expectIdle } = await setUp();
  const messages = [{ role: 'user', content: 'a'.repeat(2000) }];
  for (const more of [{ messages }, { messages, max_tokens: 5 }]) {
    const { status, error } = await ask(more);
    expect({ status, code: error.code }).toEqual({ status: 400, code: 'context_length_exceeded' });
    expect(error.message).toMatch(/20\d\d/);
  }
  const stream = await chat({ messages, stream: true });
  expect(stream.status).toBe(400);
  expect(stream.headers.get('content-type')).toBe('application/json');
  const huge = await ask({ messages: [{ role: 'user', content: 'a'.repeat(1e6) }] });
  expect(huge.error.message).toContain('1000001 characters');
  await expectIdle();
});

test('a stream has the role first, one finish reason and, if requested, the usage', async () => {
  const ids = createToyTokenizer().encode('abc');
  const { chat, expectIdle } = await setUp({ createSampler: saying([...ids, 1]) });
  const response = await chat({ stream: true, stream_options: { include_usage: true } });
  const text = await response.text();
  const events = text.split('\n\n').slice(0, -1);
  expect(events.at(-1)).toBe('data: [DONE]');
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)) as { choices: object[]; usage: object });
  expect(chunks.map(({ choices }) => choices)).toEqual([
    [{ index: 0, delta: { role: 'assistant', content: '', refusal: null }, logprobs: null, finish_reason: null }],
    [{ index: 0, delta: { content: 'a' }, logprobs: null, finish_reason: null }],
    [{ index: 0, delta: { content: 'b' }, logprobs: null, finish_reason: null }],
    [{ index: 0, delta: { content: 'c' }, logprobs: null, finish_reason: null }],
    [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }],
    [],
  ]);
  expect(chunks.map(({ usage }) => usage)).toEqual([
    null,
    null,
    null,
    null,
    null,
    expect.objectContaining({ completion_tokens: 3 }),
  ]);
  await expectIdle();
});

test('[G2] a client that leaves frees its pages: streamed, with several answers, and plain', async () => {
  const { chat, expectIdle, model } = await setUp();
  for (const more of [{ stream: true }, { stream: true, n: 4 }]) {
    const response = await chat({ ...more, ignore_eos: true });
    const reader = response.body!.getReader();
    await reader.read();
    expect((await model.stats()).numRunning).toBeGreaterThan(0);
    await reader.cancel();
    await expectIdle();
  }
  const controller = new AbortController();
  const plain = chat({ ignore_eos: true }, controller.signal);
  while ((await model.stats()).numRunning === 0);
  controller.abort();
  expect((await plain).status).toBe(499);
  await expectIdle();
});

test('[G2] a connection that breaks without a reader ends every answer, without unhandled failures', async () => {
  const { chat, model, server } = await setUp();
  const unheard: unknown[] = [];
  const hear = (error: unknown): void => void unheard.push(error);
  process.on('unhandledRejection', hear);
  const controller = new AbortController();
  const response = await chat({ stream: true, n: 4, ignore_eos: true }, controller.signal);
  const reader = response.body!.getReader();
  await reader.read();
  await settle();
  controller.abort();
  while ((await model.stats()).numRunning > 0);
  await settle();
  process.off('unhandledRejection', hear);
  expect(unheard).toEqual([]);
  await reader.cancel();
  expect(server.services.admission.numRequests).toBe(0);
});

test('a failure during a stream is an error event, and ends all answers of the request', async () => {
  const { chat, expectIdle, tokenizer } = await setUp({ createSampler: saying([4, 5, 60, 6]) }, { firstEventMs: 0 });
  const createStreamDecoder = tokenizer.createStreamDecoder;
  tokenizer.createStreamDecoder = (options) => {
    const decoder = createStreamDecoder(options);
    return {
      ...decoder,
      push(id) {
        if (id === 60) throw new Error('secret of the inside');
        return decoder.push(id);
      },
    };
  };
  for (const n of [1, 3]) {
    const response = await chat({ stream: true, n });
    expect(response.status).toBe(200);
    const last = (await response.text()).trimEnd().split('\n\n').at(-1)!;
    expect(JSON.parse(last.slice(6))).toMatchObject({ error: { type: 'server_error', code: 'internal_error' } });
    expect(last).not.toContain('secret');
    await expectIdle();
  }
});

test('[S5] the log does not contain text of users', async () => {
  const { ask, chat, logs } = await setUp();
  const secret = 'tell nobody';
  await ask({ messages: [{ role: 'user', content: secret }], max_tokens: 2 });
  await ask({ messages: secret });
  await ask({ stop: [secret, 5] });
  await (await chat({ stream: true, messages: [{ role: 'user', content: secret }], max_tokens: 2 })).text();
  expect(logs.filter(({ event }) => event === 'request')).toHaveLength(4);
  expect(JSON.stringify(logs)).not.toContain(secret);
  expect(logs[1]!.fields).toMatchObject({ status: 400, code: 'invalid_value', param: 'messages' });
});

test('[E1] shutdown rejects new requests, lets running ones finish until the deadline, then fails them', async () => {
  const clock = createManualClock();
  const { model } = await createToyRuntime();
  const server = createTestServer([entryOf('toy', async () => model)], { clock });
  const send = (): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'toy',
          messages: [{ role: 'user', content: 'hi' }],
          stream: true,
          ignore_eos: true,
        }),
      }),
    );
  const running = await send();
  const ended = server.shutDown(1000);
  const refused = await send();
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('5');
  expect((await server.fetch(new Request('http://localhost/health'))).status).toBe(503);
  clock.advance(1000);
  await ended;
  expect(model.isLoaded()).toBe(false);
  const last = (await running.text()).trimEnd().split('\n\n').at(-1)!;
  expect(JSON.parse(last.slice(6))).toMatchObject({ error: { code: 'not_loaded' } });
});
