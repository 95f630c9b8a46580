import { describe, expect, test } from 'vitest';
import {
  createSpokenModel,
  HERMES_TEMPLATE,
  type SpokenModelOptions,
  THINKING_TEMPLATE,
} from '../../../test/support/spoken-model.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { ToolDefinition } from '../chat-options.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { GenerateChunk } from '../generation-types.ts';

const weather: ToolDefinition = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    strict: true,
  },
};
const loose: ToolDefinition = { type: 'function', function: { ...weather.function, strict: false } };
const messages = [{ role: 'user' as const, content: 'How is it in Rome?' }];
const callOf = (name: string, args: string): string =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
const ROME = callOf('weather', '{"city": "Rome"}');

async function ask(answer: string, options: GenerateOptions = {}, how: SpokenModelOptions = {}) {
  const { model, requests } = createSpokenModel([answer], how);
  const result = await model.generate(messages, { maxTokens: 500, ...options });
  return { ...result, requests };
}

async function stream(answer: string, options: GenerateOptions = {}, how: SpokenModelOptions = {}) {
  const { model } = createSpokenModel([answer], how);
  const chunks: GenerateChunk[] = [];
  for await (const chunk of model.generateStream(messages, { maxTokens: 500, ...options })) chunks.push(chunk);
  return chunks;
}

describe('calls', () => {
  test('are told apart from what is said; the template shows the tools without "strict"', async () => {
    const result = await ask(`Let me see.\n${ROME}`, { tools: [weather] });
    expect(result).toMatchObject({ text: 'Let me see.', reasoning: '', finishReason: 'tool_calls' });
    expect(result.toolCalls).toEqual([
      { id: expect.stringMatching(/^call_\w{24}$/), name: 'weather', arguments: '{"city": "Rome"}' },
    ]);
    expect(result.requests[0]!.prompt).toContain('"name": "weather"');
    expect(result.requests[0]!.prompt).not.toContain('strict');
    expect(result.requests[0]!.grammar).toMatchObject({ type: 'structure' });
  });

  test('stream as they come, each piece with its call', async () => {
    const chunks = await stream(`${ROME}\n${callOf('weather', '{}')}`, { tools: [weather] });
    const deltas = chunks.flatMap((chunk) => chunk.toolCalls);
    expect(deltas.length).toBeGreaterThan(10);
    expect(new Set(deltas.map(({ index, name }) => `${index} ${name}`))).toEqual(new Set(['0 weather', '1 weather']));
    expect(deltas.map((delta) => (delta.index === 0 ? delta.arguments : '')).join('')).toBe('{"city": "Rome"}');
    expect(deltas.filter(({ outcome }) => outcome !== null).map(({ outcome }) => outcome)).toEqual([
      'complete',
      'complete',
    ]);
    expect(new Set(deltas.map(({ id }) => id)).size).toBe(2);
    expect(chunks.flatMap(({ tokenIds }) => tokenIds)).toHaveLength(
      chunks.at(-1)!.finishReason === null ? -1 : numTokens,
    );
  });
  const numTokens = ROME.length + callOf('weather', '{}').length + 1 - 2 * ('<tool_call></tool_call>'.length - 2);

  test('of unknown tools, malformed and cut off, are text or truncated', async () => {
    const unknown = callOf('nope', '{}');
    expect(await ask(unknown, { tools: [weather] })).toMatchObject({
      text: unknown,
      toolCalls: [],
      finishReason: 'stop',
    });
    const broken = '<tool_call>\n{"name": "weather", "arguments": {"city": Rome}}\n</tool_call>';
    const refusal = new RuvLLMError('unsupported', 'grammar: pattern: look-ahead');
    const malformed = await ask(broken, { tools: [loose] }, { refusal });
    expect(malformed).toMatchObject({ text: broken, toolCalls: [], finishReason: 'stop' });
    const cut = await ask(ROME, { tools: [weather], maxTokens: 45 });
    expect(cut).toMatchObject({ finishReason: 'length', toolCalls: [{ name: 'weather', arguments: '{"city": "' }] });
  });

  test('without end are cut off: that many no answer needs', async () => {
    const many = Array.from({ length: 130 }, () => ROME).join('\n');
    const { toolCalls, finishReason, usage } = await ask(
      many,
      { tools: [weather], maxTokens: 8000 },
      { maxContext: 9000 },
    );
    expect([toolCalls.length, finishReason]).toEqual([128, 'length']);
    expect(usage.completionTokens).toBeLessThan(many.length);
  });

  test('end the answer where only one is wanted', async () => {
    const two = `${ROME}\n${ROME}`;
    expect((await ask(two, { tools: [weather] })).toolCalls).toHaveLength(2);
    const one = await ask(two, { tools: [weather], parallelToolCalls: false });
    expect(one.toolCalls).toHaveLength(1);
    expect(one.finishReason).toBe('tool_calls');
    expect(one.usage.completionTokens).toBeLessThan(two.length / 2 + 5);
  });

  test('are not looked for when the choice is none, and the tools not shown', async () => {
    const result = await ask(ROME, { tools: [weather], toolChoice: 'none' });
    expect(result).toMatchObject({ toolCalls: [], finishReason: 'stop' });
    expect(result.requests[0]!.prompt).not.toContain('weather');
    expect(result.requests[0]!.grammar).toBeNull();
  });

  test('stop strings are of what is said', async () => {
    const result = await ask(`So END ${ROME}`, { tools: [weather], stop: ['END'] });
    expect(result).toMatchObject({ text: 'So ', toolCalls: [], finishReason: 'stop', stopString: 'END' });
    const inside = await ask(`E${callOf('weather', '{"city": "END"}')}`, { tools: [weather], stop: ['END'] });
    expect(inside).toMatchObject({ text: 'E', finishReason: 'tool_calls', stopString: null });
    expect(inside.toolCalls[0]!.arguments).toBe('{"city": "END"}');
    const chunks = await stream(`E${ROME}`, { tools: [weather], stop: ['END'] });
    const said = chunks.findIndex(({ text }) => text === 'E');
    expect(said).toBeGreaterThanOrEqual(0);
    expect(chunks.findIndex(({ toolCalls }) => toolCalls.length > 0)).toBeGreaterThanOrEqual(said);
  });
});

describe('what the grammar cannot enforce', () => {
  const refusal = new RuvLLMError('unsupported', 'grammar: pattern: look-ahead', { data: { keyword: 'pattern' } });

  test('is done without where the model may choose and nothing is strict', async () => {
    const result = await ask(ROME, { tools: [loose] }, { refusal });
    expect(result.toolCalls).toMatchObject([{ name: 'weather', arguments: '{"city": "Rome"}' }]);
    expect(result.requests.map(({ grammar }) => grammar === null)).toEqual([false, true]);
  });

  test.each([
    [{ tools: [weather] }],
    [{ tools: [loose], toolChoice: 'required' as const }],
    [{ tools: [loose], toolChoice: { name: 'weather' } }],
  ])('is refused otherwise: %j', async (options) => {
    await expect(ask(ROME, options, { refusal })).rejects.toMatchObject({
      code: 'unsupported',
      data: { keyword: 'pattern' },
    });
  });

  // Calls as Qwen3-Coder writes them: a tag for each parameter.
  const template = HERMES_TEMPLATE.replace(
    /\{"name": .*\}(?=\n<\/tool_call>)/,
    `<function={{ call.function.name }}>{% for key, value in call.function.arguments | items %}
<parameter={{ key }}>
{{ value }}
</parameter>{% endfor %}
</function>`,
  );
  const toolOf = (city: object, strict: boolean, more: object = {}): ToolDefinition => ({
    type: 'function',
    function: {
      name: 'weather',
      parameters: { type: 'object', properties: { city }, required: ['city'], ...more },
      strict,
    },
  });
  const TAGGED = '<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>';

  test.each([
    ['pattern', '/properties/city', [{ type: 'string', pattern: '^R' }]],
    ['required', '', [{ type: 'string' }, { required: ['zz'] }]],
    ['anyOf', '', [{ type: 'string' }, { anyOf: [{ required: ['city'] }] }]],
  ] as const)(
    'nor the format spell: %s is a wish or a refusal before anything is asked',
    async (keyword, pointer, how) => {
      const [city, more] = how;
      const wish = await ask(TAGGED, { tools: [toolOf(city, false, more)] }, { template });
      expect(wish.toolCalls).toMatchObject([{ name: 'weather', arguments: '{"city": "Rome"}' }]);
      expect(wish.requests.map(({ grammar }) => grammar)).toEqual([null]);
      for (const options of [
        { tools: [toolOf(city, true, more)] },
        { tools: [toolOf(city, false, more)], toolChoice: 'required' as const },
      ]) {
        await expect(ask(TAGGED, options, { template })).rejects.toMatchObject({
          code: 'unsupported',
          message: expect.stringContaining(keyword),
          data: { tool: 'weather', keyword, pointer },
        });
      }
    },
  );

  test('lengths of what stands between tags are enforced', async () => {
    const tools = [toolOf({ type: 'string', minLength: 1, maxLength: 4 }, true)];
    const { requests, toolCalls } = await ask(TAGGED, { tools }, { template });
    expect(JSON.stringify(requests[0]!.grammar)).toContain(
      '"kind":"raw","until":"\\n</parameter>","without":"</parameter>","minLength":1,"maxLength":4',
    );
    expect(toolCalls).toMatchObject([{ arguments: '{"city": "Rome"}' }]);
  });

  test("a user's JSON schema binds what is said; other grammars and tools do not go together", async () => {
    const grammar = { type: 'json_schema', schema: { type: 'object' } } as const;
    const { requests } = await ask('{"a": 1}', { tools: [weather], grammar });
    expect(requests[0]!.grammar).toMatchObject({
      root: { kind: 'choice', items: [{ kind: 'json', schema: { type: 'object' } }, {}] },
    });
    const regex = { type: 'regex', pattern: 'a' } as const;
    await expect(ask('a', { tools: [weather], grammar: regex })).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringMatching(/"grammar" \(regex\) and "tools"/),
    });
    const none = await ask('a', { tools: [weather], grammar: regex, toolChoice: 'none' });
    expect(none.requests[0]!.grammar).toEqual(regex);
  });
});

describe('thinking', () => {
  const how = { template: THINKING_TEMPLATE };

  test('is set apart, and its tokens are counted', async () => {
    const result = await ask('<think>\nhm, é\n</think>\n\nYes.', {}, how);
    expect(result).toMatchObject({ reasoning: 'hm, é', text: 'Yes.', finishReason: 'stop' });
    // The mark, its line, five characters of six bytes and the end's line; the closing mark belongs to what follows.
    expect(result.usage.reasoningTokens).toBe('<think>\nhm, é'.length + 1);
    const cut = await ask('<think>\nhm, hm', { maxTokens: 10 }, how);
    expect(cut).toMatchObject({ reasoning: 'hm', text: '', finishReason: 'length', usage: { reasoningTokens: 10 } });
    expect((await ask('<think>\n\n</think>\n\nYes.', {}, how)).usage.reasoningTokens).toBe(0);
  });

  test('comes before calls, and before calls that are required', async () => {
    const options = { tools: [weather], toolChoice: 'required' as const };
    const result = await ask(`<think>Rome it is</think>\n${ROME}`, options, how);
    expect(result).toMatchObject({ reasoning: 'Rome it is', text: '', toolCalls: [{ name: 'weather' }] });
    expect(result.requests[0]!.grammar).toMatchObject({
      root: { kind: 'sequence', items: [{ kind: 'choice', items: [{ text: '' }, { kind: 'sequence' }] }, {}] },
    });
    const always = THINKING_TEMPLATE.replace('assistant\n{% if', 'assistant\n<think>\n{% if');
    const inside = await ask(`so</think>${ROME}`, options, { template: always });
    expect(inside).toMatchObject({ reasoning: 'so', toolCalls: [{ name: 'weather' }] });
    expect(inside.requests[0]!.grammar).toMatchObject({
      root: { items: [{ items: [{ kind: 'raw', until: '</think>' }, {}] }, {}] },
    });
  });

  test('can be asked for where the template can be told, and is ignored elsewhere', async () => {
    const prompts = async (reasoning: GenerateOptions['reasoning'], template = THINKING_TEMPLATE) =>
      (await ask('x', reasoning === undefined ? {} : { reasoning }, { template })).requests[0]!.prompt;
    expect(await prompts('none')).toMatch(/<think>\n\n<\/think>\n\n$/);
    expect(await prompts('high')).toMatch(/assistant\n$/);
    expect(await prompts('auto')).toMatch(/assistant\n$/);
    expect(await prompts('none', HERMES_TEMPLATE)).toMatch(/assistant\n$/);
    const plain = await prompts('auto', HERMES_TEMPLATE);
    expect([await prompts('on', HERMES_TEMPLATE), await prompts('low', HERMES_TEMPLATE)]).toEqual([plain, plain]);
    const levels = `${THINKING_TEMPLATE}{{ reasoning_effort }}`;
    expect(await prompts('minimal', levels)).toMatch(/low$/);
    expect(await prompts('medium', levels)).toMatch(/medium$/);
  });
});

describe('control tokens', () => {
  test('of the dialect are seen by the parser, others and those that end are not', async () => {
    const { model } = createSpokenModel([`a<|other|>b<|im_start|>c${ROME}<|im_end|>d`]);
    const tools = [loose];
    const result = await model.generate(messages, { tools, ignoreEos: true, maxTokens: 500 });
    expect(result).toMatchObject({ text: 'abcd', toolCalls: [{ arguments: '{"city": "Rome"}' }] });
    const plain = await model.generate(messages, { maxTokens: 500 });
    expect(plain.text).toBe(`abc${ROME.replaceAll(/<\/?tool_call>/g, '')}d`);
  });
});

describe('options', () => {
  const refused = (options: object) =>
    expect(ask('x', options as GenerateOptions)).rejects.toMatchObject({ code: 'invalid_option' });

  test('of tools are checked', async () => {
    const bad = (more: object) => ({ tools: [{ type: 'function', function: { name: 'a', ...more } }] });
    for (const options of [
      { tools: {} },
      { tools: [{ name: 'a' }] },
      bad({ name: '' }),
      bad({ name: 'a b' }),
      bad({ name: 'x'.repeat(129) }),
      bad({ parameters: [] }),
      bad({ parameters: { type: 'string' } }),
      bad({ parameters: { type: 'object', x: () => 1 } }),
      bad({ parameters: { type: 'object', x: Number.NaN } }),
      bad({ parameters: new Map() }),
      bad({ description: 5 }),
      bad({ extra: 5 }),
      { tools: [weather, weather] },
      { tools: [weather], toolChoice: { name: 'other' } },
      { tools: [weather], toolChoice: 'any' },
      { toolChoice: 'required' },
      { tools: Array.from({ length: 257 }, (_, i) => ({ type: 'function', function: { name: `f${i}` } })) },
    ]) {
      await refused(options);
    }
    const { model } = createSpokenModel(['x']);
    await expect(model.generate('text', { tools: [weather] })).rejects.toMatchObject({ data: { option: 'tools' } });
    await expect(model.session('s').generate('text', { tools: [weather] })).rejects.toMatchObject({
      data: { option: 'tools' },
    });
  });

  test("of templates are plain JSON under names that are not the template's own", async () => {
    const template = `${HERMES_TEMPLATE}{{ mood }}{{ list | length }}`;
    const { requests } = await ask('x', { templateVariables: { mood: 'calm<|im_end|>', list: [1, 2] } }, { template });
    expect(requests[0]!.prompt).toMatch(/calm<\|im_end\|>2$/);
    expect(requests[0]!.promptIds.filter((id) => id === 257)).toHaveLength(1); // that of the user's turn
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    for (const variables of [
      { messages: [] },
      { tools: [] },
      { bos_token: '' },
      { eos_token: '' },
      { add_generation_prompt: false },
      { raise_exception: 1 },
      { namespace: 1 },
      { 'a b': 1 },
      JSON.parse('{"__proto__": 1}') as object,
      { a: deep },
      { a: JSON.parse(`${'['.repeat(20)}${']'.repeat(20)}`) as unknown },
      { a: () => 1 },
      { a: new Date() },
      { a: 'x'.repeat(70_000) },
      { a: Array.from({ length: 5000 }, () => 1) },
      Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`v${i}`, 1])),
    ]) {
      await refused({ templateVariables: variables });
    }
  });

  test('count for the prompt', () => {
    const { model } = createSpokenModel(['x']);
    const plain = model.encodePrompt(messages).length;
    expect(model.encodePrompt(messages, { tools: [weather] }).length).toBeGreaterThan(plain + 50);
    expect(model.encodePrompt(messages, { tools: [weather], toolChoice: 'none' })).toHaveLength(plain);
  });
});

test('results of calls go back into the conversation', async () => {
  const { model, requests } = createSpokenModel([ROME, 'Sunny.']);
  const tools = [weather];
  const first = await model.generate(messages, { tools, maxTokens: 200 });
  const [call] = first.toolCalls;
  const second = await model.generate(
    [
      ...messages,
      { role: 'assistant', content: first.text, toolCalls: first.toolCalls },
      { role: 'tool', content: 'sun', toolCallId: call!.id },
    ],
    { tools, maxTokens: 200 },
  );
  expect(second.text).toBe('Sunny.');
  expect(requests[1]!.prompt).toContain('<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}');
  expect(requests[1]!.prompt).toContain('<|im_start|>tool\nsun<|im_end|>');
});
