// Tools and reasoning through every wire format, with a scripted model.
import { describe, expect, test } from 'vitest';
import { hasOpenapi, violationsOf } from '../../../test/support/openapi-schemas.ts';
import { createSpokenModel, type SpokenModelOptions, THINKING_TEMPLATE } from '../../../test/support/spoken-model.ts';
import { readSseEvents } from '../../../test/support/sse-events.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { RuvLLMError } from '../../core/errors.ts';

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const openaiTool = { type: 'function', function: { name: 'weather', description: 'Of a city', parameters } };
const responsesTool = { type: 'function', name: 'weather', parameters, strict: false };
const anthropicTool = { name: 'weather', input_schema: parameters };
const callOf = (name: string, args: string): string =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
const ROME = callOf('weather', '{"city": "Rome"}');
const THOUGHT = '<think>\nhm\n</think>\n\n';
const CHAT = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'How is it in Rome?' }];

function setUp(answers: readonly string[], options: SpokenModelOptions = {}) {
  const { model, requests } = createSpokenModel(answers, options);
  const { fetch } = createTestServer([entryOf('m', async () => model)]);
  const send = (path: string, body: object): Promise<Response> =>
    Promise.resolve(
      fetch(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          body: JSON.stringify({ model: 'm', ...body }),
          headers: { 'content-type': 'application/json' },
        }),
      ),
    );
  const ask = async (path: string, body: object): Promise<any> => (await send(path, body)).json();
  return { ask, send, requests };
}

function expectValid(schema: string, value: unknown): void {
  if (hasOpenapi) expect(violationsOf(schema, value)).toEqual([]);
}

async function readChunks(response: Response): Promise<any[]> {
  const events = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: {'));
  const chunks = events.map((event) => JSON.parse(event.slice(6)) as unknown);
  for (const chunk of chunks) expectValid('CreateChatCompletionStreamResponse', chunk);
  return chunks;
}

describe('chat completions', () => {
  const body = { messages, tools: [openaiTool] };

  test('[T1] answers after a call and its result', async () => {
    const { ask, requests } = setUp([`Wait.\n${ROME}`, 'Sunny.']);
    const first = await ask(CHAT, body);
    expectValid('CreateChatCompletionResponse', first);
    const { message, finish_reason: reason } = first.choices[0];
    expect(reason).toBe('tool_calls');
    expect(message).toEqual({
      role: 'assistant',
      content: 'Wait.',
      refusal: null,
      tool_calls: [
        {
          id: expect.stringMatching(/^call_/),
          type: 'function',
          function: { name: 'weather', arguments: '{"city": "Rome"}' },
        },
      ],
    });
    const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: [{ type: 'text', text: 'sun' }] };
    const second = await ask(CHAT, { ...body, messages: [...messages, message, result] });
    expect(second.choices[0].message).toEqual({ role: 'assistant', content: 'Sunny.', refusal: null });
    expect(requests[1]!.prompt).toContain(`Wait.${ROME}<|im_end|>\n<|im_start|>tool\nsun<|im_end|>`);
  });

  test('[T2] the first piece of a streamed call has its id and name, the others its arguments', async () => {
    const { send } = setUp([`${ROME}\n${callOf('weather', '{"city": "Oslo"}')}`]);
    const chunks = await readChunks(
      await send(CHAT, { ...body, n: 2, stream: true, stream_options: { include_usage: true } }),
    );
    for (const choice of [0, 1]) {
      const own = chunks.flatMap(({ choices }) => choices).filter(({ index }) => index === choice);
      const deltas = own.flatMap(({ delta }) => delta.tool_calls ?? []);
      for (const [index, args] of ['{"city": "Rome"}', '{"city": "Oslo"}'].entries()) {
        const [head, ...rest] = deltas.filter((delta) => delta.index === index);
        expect(head).toMatchObject({ id: expect.stringMatching(/^call_/), type: 'function' });
        expect(head.function.name).toBe('weather');
        expect(rest.length).toBeGreaterThan(5);
        expect(rest.every((delta: object) => !('id' in delta))).toBe(true);
        expect([head, ...rest].map((delta) => delta.function.arguments).join('')).toBe(args);
      }
      expect(own.at(-1)).toMatchObject({ delta: {}, finish_reason: 'tool_calls' });
      expect(own.some(({ delta }) => (delta.content ?? '') !== '')).toBe(false);
    }
    expect(chunks.at(-1).usage.completion_tokens).toBeGreaterThan(50);
  });

  test('[T3] calls of unknown tools are text; malformed and truncated calls are no errors', async () => {
    const unknown = callOf('nope', '{}');
    expect((await setUp([unknown]).ask(CHAT, body)).choices[0]).toMatchObject({
      message: { content: unknown },
      finish_reason: 'stop',
    });
    const refusal = new RuvLLMError('unsupported', 'grammar: pattern');
    const broken = '<tool_call>\n{"name": "weather", "arguments": {"city" "Rome"}}\n</tool_call>';
    expect((await setUp([broken], { refusal }).ask(CHAT, body)).choices[0]).toMatchObject({
      message: { content: broken },
      finish_reason: 'stop',
    });
    const cut = await setUp([ROME]).ask(CHAT, { ...body, max_tokens: 45 });
    expectValid('CreateChatCompletionResponse', cut);
    expect(cut.choices[0]).toMatchObject({
      message: { content: null, tool_calls: [{ function: { arguments: '{"city": "' } }] },
      finish_reason: 'length',
    });
  });

  test('[T4] none hides the tools, required and names force a call, parallel calls only if allowed', async () => {
    const two = `${ROME}\n${ROME}`;
    const { ask, requests } = setUp([two]);
    expect((await ask(CHAT, { ...body, tool_choice: 'none' })).choices[0].message.tool_calls).toBeUndefined();
    expect(requests.at(-1)!.prompt).not.toContain('weather');
    expect((await ask(CHAT, body)).choices[0].message.tool_calls).toHaveLength(2);
    expect(requests.at(-1)!.grammar).toMatchObject({ type: 'structure', root: { kind: 'free' } });
    const single = await ask(CHAT, { ...body, parallel_tool_calls: false });
    expect(single.choices[0].message.tool_calls).toHaveLength(1);
    for (const tool_choice of ['required', { type: 'function', function: { name: 'weather' } }]) {
      await ask(CHAT, { ...body, tool_choice });
      expect(requests.at(-1)!.grammar).toMatchObject({ type: 'structure', root: { kind: 'sequence' } });
    }
    const other = await ask(CHAT, { ...body, tool_choice: { type: 'function', function: { name: 'x' } } });
    expect(other.error).toMatchObject({ param: 'tool_choice', code: 'invalid_value' });
  });

  test('[T5] a schema that cannot be enforced is a 400 with the keyword, unless the call is optional', async () => {
    const refusal = new RuvLLMError('unsupported', 'grammar: pattern at /properties/city: look-ahead');
    const { ask, send } = setUp([ROME], { refusal });
    expect((await ask(CHAT, body)).choices[0].message.tool_calls).toHaveLength(1);
    const strict = [{ ...openaiTool, function: { ...openaiTool.function, strict: true } }];
    for (const more of [{ tool_choice: 'required' }, { tools: strict }]) {
      const response = await send(CHAT, { ...body, ...more, stream: true });
      expect(response.status).toBe(400);
      expect(((await response.json()) as any).error.message).toContain('pattern');
    }
    const regex = await setUp(['x']).ask(CHAT, { ...body, regex: 'x' });
    expect(regex.error).toMatchObject({ param: 'regex', message: expect.stringMatching(/"grammar".*"tools"/) });
  });

  test('[T6] reasoning is separate from the answer, counted, and accepted in later requests', async () => {
    const { ask, send, requests } = setUp([`${THOUGHT}Yes.`], { template: THINKING_TEMPLATE });
    const answer = await ask(CHAT, { messages });
    expectValid('CreateChatCompletionResponse', answer);
    expect(answer.choices[0].message).toMatchObject({ content: 'Yes.', reasoning_content: 'hm' });
    expect(answer.usage.completion_tokens_details.reasoning_tokens).toBe('<think>\nhm'.length);
    const chunks = await readChunks(await send(CHAT, { messages, stream: true }));
    const deltas = chunks.map(({ choices }) => choices[0].delta);
    expect(deltas.map(({ reasoning_content: thought = '' }) => thought).join('')).toBe('hm');
    expect(deltas.map(({ content = '' }) => content).join('')).toBe('Yes.');
    await ask(CHAT, { messages: [...messages, answer.choices[0].message, ...messages] });
    expect(requests.at(-1)!.prompt).toContain('<think>hm</think>Yes.');
    await ask(CHAT, { messages, reasoning_effort: 'none' });
    expect(requests.at(-1)!.prompt).toMatch(/<think>\n\n<\/think>\n\n$/);
    await ask(CHAT, { messages, chat_template_kwargs: { enable_thinking: false } });
    expect(requests.at(-1)!.prompt).toMatch(/<think>\n\n<\/think>\n\n$/);
  });

  test('[T7] log-probabilities cover the visible text', async () => {
    const { ask } = setUp([`${THOUGHT}Ho${ROME}`], { template: THINKING_TEMPLATE });
    const answer = await ask(CHAT, { ...body, logprobs: true });
    const tokens = answer.choices[0].logprobs.content.map(({ token }: { token: string }) => token);
    expect(tokens).toEqual(['H', 'o']);
    const only = await setUp([ROME]).ask(CHAT, { ...body, logprobs: true });
    expect(only.choices[0].logprobs).toBeNull();
  });

  test('rejects results without a call, and calls that are not JSON', async () => {
    const result = { role: 'tool', tool_call_id: 'x', content: '1' };
    const call = (args: string) => ({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'x', type: 'function', function: { name: 'weather', arguments: args } }],
    });
    const { ask } = setUp(['ok']);
    expect((await ask(CHAT, { messages: [...messages, result] })).error.message).toContain('result of "x"');
    expect((await ask(CHAT, { messages: [...messages, call('{"a'), result] })).error.message).toContain(
      'must be a JSON object',
    );
    expect((await ask(CHAT, { messages: [...messages, call('{}'), result] })).choices[0].message.content).toBe('ok');
  });

  test('tools count as prompt tokens and appear in /apply-template', async () => {
    const { ask } = setUp(['x'], { maxContext: 100 });
    const shown = await ask('/apply-template', body);
    expect(shown.prompt).toContain('"name": "weather"');
    expect(shown.tokens.length).toBeGreaterThan((await ask('/apply-template', { messages })).tokens.length + 100);
    const long = [{ ...openaiTool, function: { ...openaiTool.function, description: 'x'.repeat(5000) } }];
    expect((await ask(CHAT, { messages, tools: long })).error).toMatchObject({
      code: 'context_length_exceeded',
      message: expect.stringContaining('characters'),
    });
  });
});

describe('responses', () => {
  const PATH = '/v1/responses';
  const body = { input: 'How is it in Rome?', tools: [responsesTool] };

  test('[T1] a call is an item; its output continues the stored response or the returned items', async () => {
    const { ask, requests } = setUp([`${THOUGHT}Wait.${ROME}`, 'Sunny.'], { template: THINKING_TEMPLATE });
    const first = await ask(PATH, body);
    expectValid('Response', first);
    expect(first.output.map(({ type }: { type: string }) => type)).toEqual(['reasoning', 'message', 'function_call']);
    expect(first.output[0]).toMatchObject({ summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] });
    const call = first.output[2];
    expect(call).toMatchObject({ name: 'weather', arguments: '{"city": "Rome"}', status: 'completed' });
    expect(first.usage.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'sun' };
    const second = await ask(PATH, { ...body, previous_response_id: first.id, input: [output] });
    expectValid('Response', second);
    expect(second.output[0].content[0].text).toBe('Sunny.');
    const again = [{ role: 'user', content: body.input }, ...first.output, output];
    expect((await ask(PATH, { ...body, store: false, input: again })).status).toBe('completed');
    const [, stored, sent] = requests.map(({ prompt }) => prompt);
    expect(stored).toContain(`<think>hm</think>Wait.${ROME}<|im_end|>\n<|im_start|>tool\nsun<|im_end|>`);
    expect(sent).toBe(stored);
  });

  test('[T2] the events of a stream', async () => {
    const { send } = setUp([`${THOUGHT}${ROME}`], { template: THINKING_TEMPLATE });
    const events = await readSseEvents(await send(PATH, { ...body, stream: true }));
    for (const { data } of events) expectValid('ResponseStreamEvent', data);
    const kinds = events.map(({ event }) => event.replace('response.', ''));
    expect(kinds.filter((kind, index) => kind !== kinds[index - 1])).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'reasoning_text.delta',
      'reasoning_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ]);
    const deltas = events.filter(({ event }) => event === 'response.function_call_arguments.delta');
    expect(deltas.map(({ data }) => data.delta).join('')).toBe('{"city": "Rome"}');
    expect(events.at(-1)!.data.response.output).toHaveLength(2);
  });

  test('[T3] a truncated call is incomplete', async () => {
    const cut = await setUp([ROME]).ask(PATH, { ...body, max_output_tokens: 45 });
    expectValid('Response', cut);
    expect(cut).toMatchObject({ status: 'incomplete', output: [{ type: 'function_call', status: 'incomplete' }] });
  });

  test('[T6] passes the effort to the template', async () => {
    const { ask, requests } = setUp(['x'], { template: THINKING_TEMPLATE });
    const answer = await ask(PATH, { ...body, reasoning: { effort: 'none', summary: 'auto' } });
    expect(answer.reasoning).toEqual({ effort: 'none', summary: null });
    expect(requests[0]!.prompt).toMatch(/<think>\n\n<\/think>\n\n$/);
    expect((await setUp(['x']).ask(PATH, { ...body, reasoning: { effort: 'high' } })).error).toBeNull();
  });
});

describe('messages', () => {
  const PATH = '/v1/messages';
  const body = { max_tokens: 500, messages, tools: [anthropicTool] };

  test('[T1] answers after tool_use and tool_result', async () => {
    const { ask, requests } = setUp([`Wait.\n${ROME}`, 'Sunny.']);
    const first = await ask(PATH, body);
    expect(first).toMatchObject({
      stop_reason: 'tool_use',
      content: [
        { type: 'text', text: 'Wait.' },
        { type: 'tool_use', id: expect.stringMatching(/^toolu_\w{24}$/), name: 'weather', input: { city: 'Rome' } },
      ],
    });
    const result = { type: 'tool_result', tool_use_id: first.content[1].id, content: [{ type: 'text', text: 'sun' }] };
    const turns = [...messages, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }];
    const second = await ask(PATH, { ...body, messages: turns });
    expect(second).toMatchObject({ stop_reason: 'end_turn', content: [{ text: 'Sunny.' }] });
    expect(requests[1]!.prompt).toContain('<|im_start|>tool\nsun<|im_end|>');
    expect(await ask(`${PATH}/count_tokens`, { messages: turns, tools: [anthropicTool] })).toEqual({
      input_tokens: second.usage.input_tokens,
    });
  });

  test('[T2] the events of a stream', async () => {
    const { send } = setUp([ROME]);
    const events = await readSseEvents(await send(PATH, { ...body, stream: true }));
    const deltas = events.flatMap(({ data }) => (data.delta?.type === 'input_json_delta' ? [data.delta] : []));
    expect(deltas.length).toBeGreaterThan(5);
    expect(deltas.map(({ partial_json: json }) => json).join('')).toBe('{"city": "Rome"}');
    expect(events.find(({ event }) => event === 'message_delta')!.data.delta.stop_reason).toBe('tool_use');
  });

  test('[T4] supports any, tool, none and disabled parallel calls', async () => {
    const { ask, requests } = setUp([`${ROME}\n${ROME}`]);
    for (const type of ['any', 'tool']) {
      const choice = { type, ...(type === 'tool' ? { name: 'weather' } : {}) };
      await ask(PATH, { ...body, tool_choice: choice });
      expect(requests.at(-1)!.grammar).toMatchObject({ type: 'structure', root: { kind: 'sequence' } });
    }
    const one = await ask(PATH, { ...body, tool_choice: { type: 'auto', disable_parallel_tool_use: true } });
    expect(one.content).toHaveLength(1);
    await ask(PATH, { ...body, tool_choice: { type: 'none' } });
    expect(requests.at(-1)!.prompt).not.toContain('weather');
  });

  test('[T6] contains thinking only if requested', async () => {
    const { ask, send, requests } = setUp([`${THOUGHT}Yes.`], { template: THINKING_TEMPLATE });
    const thinking = { type: 'enabled', budget_tokens: 1024 };
    const answer = await ask(PATH, { ...body, thinking });
    expect(answer.content).toEqual([
      { type: 'thinking', thinking: 'hm', signature: expect.any(String) },
      { type: 'text', text: 'Yes.', citations: null },
    ]);
    const events = await readSseEvents(await send(PATH, { ...body, thinking, stream: true }));
    const kinds = events.flatMap(({ data }) => data.delta?.type ?? data.content_block?.type ?? []);
    expect(kinds.filter((kind, index) => kind !== kinds[index - 1])).toEqual([
      'thinking',
      'thinking_delta',
      'signature_delta',
      'text',
      'text_delta',
    ]);
    expect((await ask(PATH, body)).content).toEqual([{ type: 'text', text: 'Yes.', citations: null }]);
    expect(requests.at(-1)!.prompt).toMatch(/<think>\n\n<\/think>\n\n$/);
    await ask(PATH, { ...body, messages: [...messages, { role: 'assistant', content: answer.content }, ...messages] });
    expect(requests.at(-1)!.prompt).toContain('<think>hm</think>Yes.');
    expect((await setUp(['x']).ask(PATH, { ...body, thinking })).stop_reason).toBe('end_turn');
  });
});

describe('[T8] functions, the older form', () => {
  const functions = [openaiTool.function];

  test('the answer has function_call, and later requests may contain it with its result', async () => {
    const { ask, requests } = setUp([ROME, 'Sunny.']);
    const first = await ask(CHAT, { messages, functions, function_call: 'auto' });
    expectValid('CreateChatCompletionResponse', first);
    expect(first.choices[0]).toMatchObject({
      finish_reason: 'function_call',
      message: { content: null, function_call: { name: 'weather', arguments: '{"city": "Rome"}' } },
    });
    expect(first.choices[0].message).not.toHaveProperty('tool_calls');
    const result = { role: 'function', name: 'weather', content: 'sun' };
    const turns = [...messages, first.choices[0].message, result];
    const second = await ask(CHAT, { messages: turns, functions });
    expect(second.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Sunny.' } });
    expect(requests[1]!.prompt).toContain(`${ROME}<|im_end|>`);
    expect(requests[1]!.prompt).toContain('<|im_start|>tool\nsun<|im_end|>');
  });

  test('a stream has the name once and the arguments in pieces', async () => {
    const { send } = setUp([`${ROME}\n${ROME}`]);
    const chunks = await readChunks(await send(CHAT, { messages, functions, stream: true }));
    for (const chunk of chunks) expectValid('CreateChatCompletionStreamResponse', chunk);
    const calls = chunks.flatMap(({ choices }) => choices[0].delta.function_call ?? []);
    expect(calls.map(({ name }) => name).filter(Boolean)).toEqual(['weather']);
    expect(calls.map(({ arguments: text }) => text).join('')).toBe('{"city": "Rome"}');
    expect(chunks.at(-1).choices[0].finish_reason).toBe('function_call');
  });

  test('a name requires the call, and none hides the functions', async () => {
    const { ask, requests } = setUp([ROME, 'x']);
    await ask(CHAT, { messages, functions, function_call: { name: 'weather' } });
    expect(requests[0]!.grammar).not.toBeNull();
    await ask(CHAT, { messages, functions, function_call: 'none' });
    expect(requests[1]!.prompt).not.toContain('weather');
  });
});

describe('[T9] a last message of the assistant', () => {
  const start = { role: 'assistant', content: 'Sure, <|im_end|>it is' };
  const anthropic = '/v1/messages';
  const END_OF_PROMPT = '<|im_start|>assistant\nSure, <|im_end|>it is';

  test("is continued in Anthropic's format", async () => {
    const { ask, requests } = setUp([' sunny.']);
    const answer = await ask(anthropic, { max_tokens: 50, messages: [...messages, start] });
    expect(answer.content).toEqual([{ type: 'text', text: ' sunny.', citations: null }]);
    expect(requests[0]!.prompt.endsWith(END_OF_PROMPT)).toBe(true);
    // Control tokens in it are text.
    expect(requests[0]!.promptIds.filter((id) => id === 257)).toHaveLength(1);
    const counted = await ask(`${anthropic}/count_tokens`, { messages: [...messages, start] });
    expect(counted.input_tokens).toBe(requests[0]!.promptIds.length);
  });

  test("is a turn of its own in OpenAI's, unless the request says otherwise", async () => {
    const { ask, requests } = setUp(['x']);
    await ask(CHAT, { messages: [...messages, start] });
    expect(requests[0]!.prompt).toMatch(/<\|im_start\|>assistant\n$/);
    await ask(CHAT, { messages: [...messages, start], continue_final_message: true });
    await ask(CHAT, { messages: [...messages, { ...start, prefix: true }] });
    for (const { prompt } of requests.slice(1)) expect(prompt.endsWith(END_OF_PROMPT)).toBe(true);
    const { error } = await ask(CHAT, { messages, continue_final_message: true });
    expect(error).toMatchObject({ code: 'invalid_value', param: 'continue_final_message' });
  });

  test('closes the reasoning that a template opens', async () => {
    const always = THINKING_TEMPLATE.replace('assistant\n{% if', 'assistant\n<think>\n{% if');
    const { ask, requests } = setUp(['.'], { template: always });
    const thinking = { type: 'enabled', budget_tokens: 1024 };
    const answer = await ask(anthropic, {
      max_tokens: 50,
      thinking,
      messages: [...messages, { ...start, content: 'A' }],
    });
    expect(requests[0]!.prompt).toMatch(/<think>\n<\/think>\n\nA$/);
    expect(answer.content).toMatchObject([{ type: 'text', text: '.' }]);
  });
});

describe("Anthropic's prompts", () => {
  const PATH = '/v1/messages';
  const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } };
  const billing = (text: string) => ({ type: 'text', text: `x-anthropic-billing-header: cc_version=2; cch=${text};` });
  const rules = { type: 'text', text: 'Be kind.', ...mark };

  test('[A1] cache_control is accepted in every place, and evicts the pages later', async () => {
    const { send, requests } = setUp(['x']);
    const result = [{ type: 'text', text: 'sun', ...mark }];
    const turns = [
      { role: 'user', content: [{ type: 'text', text: 'How is it?', ...mark }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'weather', input: {}, ...mark }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: result, is_error: false, ...mark }] },
    ];
    const tools = [{ ...anthropicTool, ...mark }];
    const marked = await send(PATH, { max_tokens: 9, ...mark, system: [rules], tools, messages: turns });
    expect([marked.status, marked.headers.get('x-ignored-fields')]).toEqual([200, null]);
    await send(PATH, { max_tokens: 9, messages });
    expect(requests.map(({ retention }) => retention)).toEqual(['session', 'ordinary']);
  });

  test('[A1] the usage counts what was read from the cache and written to it', async () => {
    const { ask } = setUp(['x']);
    const plain = (await ask(PATH, { max_tokens: 9, messages })).usage;
    const marked = (await ask(PATH, { max_tokens: 9, messages, ...mark })).usage;
    expect(plain).toMatchObject({ cache_creation_input_tokens: 0, cache_read_input_tokens: 0 });
    expect(marked).toMatchObject({
      input_tokens: 1,
      cache_creation_input_tokens: plain.input_tokens - 1,
      cache_creation: { ephemeral_5m_input_tokens: plain.input_tokens - 1 },
    });
  });

  test('[A2] a billing line at the start of the system prompt is left out, and nowhere else', async () => {
    const prompts = async (system: unknown): Promise<string> => {
      const { ask, requests } = setUp(['x']);
      await ask(PATH, { max_tokens: 9, messages, system });
      return requests[0]!.prompt;
    };
    const kind = await prompts('Be kind.');
    expect(await prompts([billing('1'), rules])).toBe(kind);
    expect(await prompts([billing('2'), rules])).toBe(kind);
    expect(await prompts([{ type: 'text', text: `${billing('3').text}\nBe kind.` }])).toBe(kind);
    expect(await prompts(`${billing('4').text}\nBe kind.`)).toBe(kind);
    expect(await prompts([billing('5')])).toBe(await prompts(undefined));
    for (const system of [
      [rules, billing('6')],
      ` ${billing('6').text}`,
      `Be kind.\n${billing('6').text}`,
      'x-anthropic-billing: 6',
    ]) {
      expect(await prompts(system)).toContain('6');
    }
  });
});
