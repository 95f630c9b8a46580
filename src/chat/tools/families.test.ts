import { describe, expect, test } from 'vitest';
import { createChatTemplate } from '../chat-template.ts';
import type { ChatMessage } from '../types.ts';
import { TOOL_FORMATS } from './formats/index.ts';
import { createOutputParser } from './output-parser.ts';
import { REASONING_FORMATS, startsInReasoning } from './reasoning.ts';
import { collect } from './collect.contract.ts';
import type { ToolSpec } from './types.ts';

const TOOLS: ToolSpec[] = [
  {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
  },
];

function read(format: string, text: string, reasoning: string | null = null, tools = TOOLS) {
  const parser = createOutputParser({
    format: TOOL_FORMATS.find((one) => one.name === format)!,
    reasoning: REASONING_FORMATS.find((one) => one.name === reasoning) ?? null,
    tools,
  });
  const { content, reasoning: thoughts, calls } = collect([...parser.push(text), ...parser.finish()]);
  return { content, thoughts, calls: calls.map((call) => `${call.name} ${call.arguments}`) };
}

describe('answers as each family writes them', () => {
  test.each<[string, string, string[], string]>([
    [
      'mistral',
      'Sure.[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "X"}, "id": "abcdefghi"}]',
      ['{"city": "X"}'],
      'Sure.',
    ],
    [
      'mistral',
      '[TOOL_CALLS] [{"name":"get_weather","arguments":{"city":"X"}},{"name":"get_weather","arguments":{}}]',
      ['{"city":"X"}', '{}'],
      '',
    ],
    [
      'deepseek-3.1',
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "X"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      ['{"city": "X"}'],
      '',
    ],
    [
      'deepseek',
      'Hm<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "X"}\n```\n<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      ['{"city": "X"}'],
      'Hm',
    ],
    ['functionary-3.2', 'get_weather\n{"city": "X"}', ['{"city": "X"}'], ''],
    [
      'functionary-3.2',
      'all\nLet me see.>>>get_weather\n{"city": "X"}>>>get_weather\n{}',
      ['{"city": "X"}', '{}'],
      'Let me see.',
    ],
    ['functionary-3.2', 'all\nYou call\nall\nof them', [], 'You call\nall\nof them'],
    [
      'llama3',
      '{"name": "get_weather", "parameters": {"city": "X"}}; {"name": "get_weather", "parameters": {}}',
      ['{"city": "X"}', '{}'],
      '',
    ],
    ['plain-json', '```json\n[{"name": "get_weather", "arguments": {"city": "X"}}]\n```', ['{"city": "X"}'], ''],
    [
      'qwen-coder',
      '<tool_call>\n<function=get_weather>\n<parameter=city>\n1\n2\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>',
      [String.raw`{"city": "1\n2", "days": 3}`],
      '',
    ],
    ['qwen-coder', '<function=get_weather>\n</function>', ['{}'], ''],
    ['glm', '<tool_call>get_weather</tool_call>', ['{}'], ''],
    [
      'gemma-4',
      '<|tool_call>call:get_weather{city:<|"|>a}b, c:"d"<|"|>,days:3}<tool_call|>',
      [String.raw`{"city":"a}b, c:\"d\"","days":3}`],
      '',
    ],
    ['hermes', '<tool_call>get_weather\n</tool_call>', [], '<tool_call>get_weather\n</tool_call>'],
  ])('%s: %s', (format, text, args, content) => {
    expect(read(format, text)).toEqual({ content, thoughts: '', calls: args.map((one) => `get_weather ${one}`) });
  });

  test('gpt-oss: analysis is reasoning, commentary to a function is a call, final is content', () => {
    const analysis = '<|channel|>analysis<|message|>Need the weather.<|end|>';
    const call =
      '<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"X"}<|call|>';
    const final = '<|start|>assistant<|channel|>final<|message|>It rains.<|return|>';
    expect(read('gpt-oss', analysis + call, 'harmony')).toEqual({
      content: '',
      thoughts: 'Need the weather.',
      calls: ['get_weather {"city":"X"}'],
    });
    expect(read('gpt-oss', analysis + final, 'harmony', []).content).toBe('It rains.');
    expect(read('gpt-oss', ' to=functions.get_weather<|channel|>commentary json<|message|>{}<|call|>').calls).toEqual([
      'get_weather {}',
    ]);
  });

  test('starts inside the reasoning if the prompt ends there', () => {
    const think = REASONING_FORMATS.find((one) => one.name === 'think')!;
    expect(startsInReasoning(think, '<|im_start|>assistant\n<think>\n')).toBe(true);
    expect(startsInReasoning(think, '<|im_start|>assistant\n<think>\n\n</think>\n\n')).toBe(false);
    expect(startsInReasoning(null, '<think>')).toBe(false);
  });
});

describe('parses garbage in linear time', () => {
  const evil: [string, string][] = [
    ['hermes', '<tool_call>'],
    ['hermes', '<tool_call>{"arguments": {"a": "'],
    ['qwen-coder', '<tool_call><function=get_weather><parameter=city>'],
    ['gemma-4', '<|tool_call>call:get_weather{'],
    ['glm', '<tool_call>get_weather<arg_key>city</arg_key><arg_value>'],
    ['plain-json', '{"arguments": ['],
  ];
  test.each(evil)('%s: %s repeated', (format, unit) => {
    const text = unit.repeat(Math.floor(200_000 / unit.length));
    const pieces = text.match(/[^]{1,512}/g)!;
    const parser = createOutputParser({
      format: TOOL_FORMATS.find((one) => one.name === format)!,
      reasoning: null,
      tools: TOOLS,
    });
    const answer = collect([...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]);
    expect(answer.content).toBe(text);
  });
});

describe('templates of old families', () => {
  const create = (source: string) =>
    createChatTemplate({ source, architecture: null, bosToken: '', eosToken: '</s>', specialSpellings: [] });
  const talk: ChatMessage[] = [
    { role: 'user', content: 'Q' },
    {
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'call_long_id', name: 'get_weather', arguments: '{"city": "X"}' }],
    },
    { role: 'tool', content: 'Rain', toolCallId: 'call_long_id' },
  ];

  test('converts ids to nine characters, the same for a call and its result', () => {
    const template = create(`{%- for m in messages -%}
      {%- if m.tool_calls -%}[TOOL_CALLS][
        {%- for c in m.tool_calls -%}
          {%- if c.id|length != 9 -%}{{ raise_exception('ids have nine characters') }}{%- endif -%}
          {"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}, "id": "{{ c.id }}"}
        {%- endfor -%}]
      {%- elif m.role == 'tool' -%}[TOOL_RESULTS]{{ m.tool_call_id }} {{ m.content }}[/TOOL_RESULTS]
      {%- else -%}[INST]{{ m.content }}[/INST]{%- endif -%}
    {%- endfor -%}`);
    expect(template.dialect).toMatchObject({ idForm: 'alnum9', argumentsForm: 'object', showsTools: false });
    expect(template.dialect.format.name).toBe('mistral');
    expect(template.render(talk).text).toBe(
      '[INST]Q[/INST][TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "X"}, "id": "call00000"}]' +
        '[TOOL_RESULTS]call00000 Rain[/TOOL_RESULTS]',
    );
  });

  test('describes tools and shows calls and results as text if the template has no tool support', () => {
    const template = create(`{%- for m in messages -%}[{{ m.role }}]{{ m.content }}{%- endfor -%}`);
    expect(template.dialect.format.name).toBe('plain-json');
    const { text } = template.render(talk, { tools: [{ type: 'function', function: TOOLS[0]! }] });
    expect(text).toContain('[system]You can call these tools.');
    expect(text).toContain('"properties":{"city":{"type":"string"}');
    expect(text).toContain('[user]Q[assistant]{"name": "get_weather", "arguments": {"city": "X"}}[tool]Rain');
  });

  test('treats a template that always fails as one without tools, at low cost', () => {
    const template = create(`{%- for i in range(100000) -%}{%- for j in range(100000) -%}{%- endfor -%}{%- endfor -%}`);
    expect(template.dialect.format.name).toBe('plain-json');
  });
});

test('names the chosen tools in the grammar, and allows several calls only on request', () => {
  const hermes = TOOL_FORMATS[0]!;
  const tools = [...TOOLS, { name: 'now' }];
  const grammar = hermes.grammar({ tools, choice: { name: 'now' }, allowsParallel: true });
  expect(grammar).toEqual({
    isRequired: true,
    triggers: ['<tool_call>'],
    begin: '<tool_call>\n',
    calls: [
      {
        name: 'now',
        prefix: '{"name": "now", "arguments": ',
        arguments: { kind: 'json', schema: { type: 'object', properties: {}, additionalProperties: false } },
        suffix: '}\n</tool_call>',
      },
    ],
    separator: null,
    end: '',
  });
  expect(hermes.grammar({ tools, choice: 'auto', allowsParallel: true })).toMatchObject({
    isRequired: false,
    separator: '\n<tool_call>\n',
  });
  const glm = TOOL_FORMATS.find((one) => one.name === 'glm')!;
  expect(glm.grammar({ tools: TOOLS, choice: 'required', allowsParallel: false }).calls[0]!.arguments).toEqual({
    kind: 'parameters',
    parameters: [
      {
        tool: TOOLS[0]!.name,
        name: 'city',
        begin: '<arg_key>city</arg_key>\n<arg_value>',
        isRaw: true,
        schema: { type: 'string' },
        end: '</arg_value>\n',
        stop: '</arg_value>',
        isRequired: false,
      },
      {
        tool: TOOLS[0]!.name,
        name: 'days',
        begin: '<arg_key>days</arg_key>\n<arg_value>',
        isRaw: false,
        schema: { type: 'integer' },
        end: '</arg_value>\n',
        stop: '</arg_value>',
        isRequired: false,
      },
    ],
    separator: '',
    schema: TOOLS[0]!.parameters,
  });
});
