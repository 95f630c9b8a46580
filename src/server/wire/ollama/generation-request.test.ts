import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { describeFailure, refusal } from '../../errors.ts';
import { collectIgnored } from '../fields.ts';
import { keepAliveField } from './duration.ts';
import { ollamaErrors } from './error-body.ts';
import { readChat, readGenerate } from './generation-request.ts';
import { readMessages } from './messages.ts';
import { readOptions } from './options.ts';

const user = { role: 'user', content: 'hi' };
const chat = (more: object = {}, canUnload = true) => readChat({ model: 'm', messages: [user], ...more }, canUnload);
const generate = (more: object) => readGenerate({ model: 'm', ...more }, true);
const PLAIN = {
  model: 'm',
  numChoices: 1,
  options: {},
  constraint: null,
  tools: [],
  toolChoice: 'auto',
  canCallInParallel: true,
  fieldNames: { maxTokens: 'options.num_predict', reasoning: 'think', grammar: 'format', fill: 'suffix' },
};
const REQUEST = { model: 'm', isStream: true, keepAlive: null, hasThinking: true, numContext: null };

describe('a chat', () => {
  test('with the least fields', () => {
    expect(chat()).toEqual({ ...REQUEST, generation: { ...PLAIN, prompts: [[user]] } });
  });

  test.each([
    [{ stream: false }, { isStream: false }],
    [{ keep_alive: '5m' }, { keepAlive: { idleMs: 300_000 } }],
    [{ keep_alive: -1 }, { keepAlive: { idleMs: null } }],
    [{ think: true }, { hasThinking: true, generation: { options: { reasoning: 'on' } } }],
    [{ think: false }, { hasThinking: false, generation: { options: { reasoning: 'none' } } }],
    [{ think: 'low' }, { hasThinking: true, generation: { options: { reasoning: 'low' } } }],
    [{ options: { num_ctx: 4096 } }, { numContext: 4096, generation: { options: {} } }],
    [{ options: { num_predict: 5 } }, { generation: { options: { maxTokens: 5, clampMaxTokens: true } } }],
    [{ format: '' }, { generation: { constraint: null } }],
    [{ format: 'json' }, { generation: { constraint: { kind: 'json_object' } } }],
    [
      { format: { type: 'object' } },
      {
        generation: {
          constraint: { kind: 'json_schema', name: 'format', schema: { type: 'object' }, isStrict: false },
        },
      },
    ],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }] },
      { generation: { tools: [{ name: 'f', description: null, parameters: { type: 'object' }, isStrict: false }] } },
    ],
  ])('%j', (more, request) => {
    expect(chat(more)).toMatchObject(request);
  });

  test('without a limit is not clamped', () => {
    expect(chat({ options: { num_predict: -1, temperature: 0 } }).generation!.options).toEqual({ temperature: 0 });
  });

  test('without messages only loads the model', () => {
    expect(chat({ messages: [] })).toEqual({ ...REQUEST, generation: null });
    expect(chat({ messages: null })).toEqual({ ...REQUEST, generation: null });
  });

  test('says that `keep_alive` has no effect where it has none', () => {
    const { value, names } = collectIgnored(() => chat({ keep_alive: 5 }, false));
    expect([value.keepAlive, names]).toEqual([null, ['keep_alive']]);
    expect(collectIgnored(() => chat({}, false)).names).toEqual([]);
    expect(collectIgnored(() => chat({ keep_alive: 5 })).names).toEqual([]);
  });

  const tool = { function: { name: 'f' } };

  test('has at most 128 tools', () => {
    expect(chat({ tools: Array.from({ length: 128 }, () => tool) }).generation!.tools).toHaveLength(128);
    expect(refusalOf(() => chat({ tools: Array.from({ length: 129 }, () => tool) }))).toMatchObject({
      status: 400,
      param: 'tools',
    });
  });

  test.each([
    [{ model: null }, 'model'],
    [{ think: 'much' }, 'think'],
    [{ format: 'xml' }, 'format'],
    [{ tools: { length: 1 } }, 'tools'],
    [{ tools: [{}] }, 'tools[0].function'],
    [{ tools: [tool, { function: {} }] }, 'tools[1].function.name'],
    [{ keep_alive: 'soon' }, 'keep_alive'],
    [{ options: { num_gpu: 1 } }, 'options.num_gpu'],
  ])('%j is refused', (more, param) => {
    expect(refusalOf(() => chat(more))).toMatchObject({ status: 400, param });
  });
});

describe('a completion', () => {
  test.each([
    [{ prompt: 'hi' }, { prompts: [[user]] }],
    [{ prompt: 'hi', system: '' }, { prompts: [[user]] }],
    [{ prompt: 'hi', system: 'be kind' }, { prompts: [[{ role: 'system', content: 'be kind' }, user]] }],
    [{ prompt: 'hi', raw: false, suffix: '', template: '' }, { prompts: [[user]] }],
    [
      { prompt: 'hi', think: true },
      { prompts: [[user]], options: { reasoning: 'on' } },
    ],
    [{ prompt: 'hi', raw: true, think: true }, { prompts: ['hi'] }],
    [
      { prompt: 'hi', suffix: ' end' },
      { prompts: ['hi'], options: { fill: { suffix: ' end' }, corrections: false } },
    ],
    [{ prompt: 'hi', images: [] }, { prompts: [[user]] }],
  ])('%j', (more, generation) => {
    expect(generate(more).generation).toEqual({ ...PLAIN, ...generation });
  });

  test('without a prompt only loads the model', () => {
    expect(generate({}).generation).toBeNull();
    expect(generate({ prompt: '', suffix: 'a' }).generation).toBeNull();
  });

  test.each([
    [{ template: '{{ .Prompt }}' }, 'template'],
    [{ images: ['aGk='] }, 'images'],
  ])('%j is refused', (more, param) => {
    expect(refusalOf(() => generate({ prompt: 'hi', ...more }))).toMatchObject({ status: 400, param });
  });
});

describe('options', () => {
  test.each([
    [{}, {}],
    [{ num_predict: 1 }, { maxTokens: 1 }],
    [{ num_predict: 2147483647 }, { maxTokens: 2147483647 }],
    // No limit.
    [{ num_predict: 0 }, {}],
    [{ num_predict: -2 }, {}],
    [{ top_k: -1 }, { topK: 0 }],
    [{ top_k: 40 }, { topK: 40 }],
    [{ seed: -3 }, { seed: 3 }],
    [{ seed: 0 }, { seed: 0 }],
    [{ stop: 'a' }, { stop: ['a'] }],
    [{ stop: ['a', '', 'b'] }, { stop: ['a', 'b'] }],
    [
      { temperature: 0, top_p: 1, min_p: 0, typical_p: 0.5, repeat_penalty: 1.1, repeat_last_n: -1 },
      { temperature: 0, topP: 1, minP: 0, typicalP: 0.5, repetitionPenalty: 1.1, penaltyWindow: -1 },
    ],
    [
      { presence_penalty: 2, frequency_penalty: -2, num_ctx: 1 },
      { presencePenalty: 2, frequencyPenalty: -2 },
    ],
  ])('%j', (value, options) => {
    expect(readOptions(value)).toEqual(options);
  });

  test.each([
    [{ num_predict: 2147483648 }, 'options.num_predict'],
    [{ num_predict: -3 }, 'options.num_predict'],
    [{ stop: 3 }, 'options.stop'],
    [{ stop: { length: 0 } }, 'options.stop'],
    [{ stop: ['a', 3] }, 'options.stop'],
  ])('%j is refused', (value, param) => {
    expect(refusalOf(() => readOptions(value))).toMatchObject({ status: 400, param });
  });
});

describe('keep_alive', () => {
  test.each([
    [0, 0],
    [1.5, 1500],
    [-1, null],
    ['0', 0],
    ['10', 10_000],
    ['-1', null],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['250ms', 250],
    ['2000us', 2],
    ['-5m', null],
    // The longest delay of a timer is 2^31 - 1 ms.
    ['2147483647ms', 2_147_483_647],
    ['2147483648ms', null],
    [10_000_000, null],
  ])('%j is %j ms', (value, idleMs) => {
    expect(keepAliveField.read(value, 'keep_alive')).toEqual({ idleMs });
  });

  test.each(['', '-', 'soon', '5m ', '5x', 'x5m', '5mx', true, NaN])('%j is refused', (value) => {
    expect(refusalOf(() => keepAliveField.read(value, 'keep_alive'))).toMatchObject({ param: 'keep_alive' });
  });
});

describe('messages', () => {
  const call = (name: string, more: object = {}) => ({ function: { name, arguments: { a: 1 } }, ...more });
  const calls = (...tool_calls: object[]) => ({ role: 'assistant', content: '', tool_calls });
  const result = (more: object) => ({ role: 'tool', content: 'r', ...more });
  /** The ids of the calls that the results after these calls answer. */
  const answered = (called: object, ...results: object[]) =>
    readMessages([called, ...results.map(result)])
      .slice(1)
      .map(({ toolCallId }) => toolCallId);

  test('have text, thoughts and calls', () => {
    expect(
      readMessages([
        { role: 'system', content: 'be kind', thinking: 'hm', images: [] },
        { role: 'user' },
        { role: 'assistant', content: 'a', thinking: '' },
        { role: 'assistant', thinking: 'hm', tool_calls: [call('f'), { function: { index: 1, name: 'g' }, id: '' }] },
        { role: 'assistant', content: 'b', tool_calls: [] },
        { role: 'user', content: 'c', tool_calls: [call('f')] },
      ]),
    ).toEqual([
      { role: 'system', content: 'be kind' },
      { role: 'user', content: '' },
      { role: 'assistant', content: 'a' },
      {
        role: 'assistant',
        content: '',
        reasoning: 'hm',
        toolCalls: [
          { id: 'call_0', name: 'f', arguments: '{"a":1}' },
          { id: 'call_1', name: 'g', arguments: '{}' },
        ],
      },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
    ]);
  });

  test('answer the calls in order, or by name', () => {
    expect(answered(calls(call('f'), call('g')), {}, {})).toEqual(['call_0', 'call_1']);
    expect(answered(calls(call('f'), call('g')), { tool_name: 'g' }, { tool_name: 'f' })).toEqual(['call_1', 'call_0']);
    expect(answered(calls(call('f'), call('g'), call('g')), { tool_name: 'g' }, { tool_name: 'g' })).toEqual([
      'call_1',
      'call_2',
    ]);
    expect(answered(calls(call('f'), call('g')), { tool_name: 'other' })).toEqual(['call_0']);
  });

  test('answer a call by its id, also if another has the same name', () => {
    const both = calls(call('f', { id: 'a' }), call('f', { id: 'b' }));
    expect(answered(both, { tool_call_id: 'b', tool_name: 'f' }, { tool_call_id: 'a', tool_name: 'f' })).toEqual([
      'b',
      'a',
    ]);
    expect(answered(both, { tool_call_id: 'b' }, {})).toEqual(['b', 'a']);
  });

  test('keep the id and the name of a result without a call', () => {
    expect(
      readMessages([result({ tool_call_id: 'x', tool_name: 'f' }), result({ tool_name: '' }), result({})]),
    ).toEqual([
      { role: 'tool', content: 'r', toolCallId: 'x', name: 'f' },
      { role: 'tool', content: 'r', toolCallId: 'call_0' },
      { role: 'tool', content: 'r', toolCallId: 'call_1' },
    ]);
  });

  test('have at most 128 calls each', () => {
    const many = Array.from({ length: 128 }, () => call('f'));
    expect(readMessages([calls(...many)])[0]!.toolCalls).toHaveLength(128);
    expect(refusalOf(() => readMessages([calls(...many, call('f'))]))).toMatchObject({
      param: 'messages[0].tool_calls',
    });
  });

  test.each([
    ['text', 'messages'],
    [[{ ...user, images: ['aGk='] }], 'messages[0].images'],
    [[{ ...user, images: 'aGk=' }], 'messages[0].images'],
    [[{ role: 'function' }], 'messages[0].role'],
    [[user, { ...calls(), tool_calls: { length: 0 } }], 'messages[1].tool_calls'],
    [[calls({ name: 'f' })], 'messages[0].tool_calls[0]'],
    [[{ ...calls(), tool_calls: [3] }], 'messages[0].tool_calls[0]'],
    [[calls(call('f'), { function: { arguments: {} } })], 'messages[0].tool_calls[1].function.name'],
  ])('%j are refused', (value, param) => {
    expect(refusalOf(() => readMessages(value))).toMatchObject({ status: 400, param });
  });
});

test.each([
  [422, 400, 'tools', { error: 'no', param: 'tools' }],
  [404, 404, null, { error: 'no' }],
])('a failure of the status %i is a %i', (status, sent, param, body) => {
  const failure = describeFailure(refusal(status, 'x', 'no', { param }));
  expect(ollamaErrors.status!(failure)).toBe(sent);
  expect(ollamaErrors.body(failure, 'req_1')).toEqual(body);
});
