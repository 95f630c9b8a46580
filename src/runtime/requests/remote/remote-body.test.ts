import { expect, test } from 'vitest';
import { type GenerationRequest, PLAIN_REQUEST } from '../generation-request.ts';
import { isLocalOnly, toRemoteBody } from './remote-body.ts';

const MESSAGES = [{ role: 'user', content: 'hi' }] as const;
const requestOf = (changes: Partial<GenerationRequest>): GenerationRequest => ({
  ...PLAIN_REQUEST,
  model: 'auto',
  prompts: [MESSAGES],
  options: {},
  ...changes,
});

test.each<[string, Partial<GenerationRequest>, boolean]>([
  ['messages', {}, false],
  ['a text', { prompts: ['hi'] }, false],
  ['an empty text', { prompts: [''] }, false],
  ['two prompts', { prompts: ['hi', 'ho'] }, true],
  ['token ids', { prompts: [[1, 2]] }, true],
  ['an image', { prompts: [[{ ...MESSAGES[0], images: [{ offset: 0, data: new Uint8Array(1) }] }]] }, true],
  ['no images', { prompts: [[{ ...MESSAGES[0], images: [] }]] }, false],
  ['JSON', { constraint: { kind: 'json_object' } }, false],
  ['a schema', { constraint: { kind: 'json_schema', name: 'x', schema: {}, isStrict: true } }, false],
  ['a grammar', { constraint: { kind: 'grammar', grammar: 'root ::= "a"' } }, true],
  ['an expression', { constraint: { kind: 'regex', pattern: 'a' } }, true],
  ['log probabilities', { options: { topLogprobs: 0 } }, true],
  ['biases', { options: { logitBias: {} } }, true],
  ['an adapter', { options: { adapter: 'legal' } }, true],
  ['no adapter, by name', { options: { adapter: null } }, true],
  ['a gap', { options: { fill: { suffix: '' } } }, true],
  ['retries', { options: { reflection: true } }, true],
  ['retries of a kind', { options: { reflection: {} } }, true],
  ['no retries', { options: { reflection: false } }, false],
  ['a grammar of the library', { options: { grammar: { type: 'json_object' } } }, true],
  ['common options', { options: { maxTokens: 1, temperature: 0, topP: 1, seed: 1, stop: ['x'] } }, false],
])('whether only this machine can answer a request with %s', (_name, changes, expected) => {
  expect(isLocalOnly(requestOf(changes))).toBe(expected);
});

const bodyOf = (changes: Partial<GenerationRequest>): unknown =>
  JSON.parse(JSON.stringify(toRemoteBody(requestOf(changes), 'far-model')));

const PLAIN_BODY = {
  model: 'far-model',
  messages: [{ role: 'user', content: 'hi' }],
  stream: true,
  stream_options: { include_usage: true },
  temperature: 0.7,
  top_p: 1,
};

test('a plain request is a stream with its sampling and usage, and nothing that was not asked for', () => {
  expect(bodyOf({})).toEqual(PLAIN_BODY);
  expect(bodyOf({ prompts: ['hi'] })).toEqual(PLAIN_BODY);
});

const TOOL = { name: 'f', description: 'Does.', parameters: { type: 'object' }, isStrict: true } as const;
const SENT_TOOL = { type: 'function', function: { name: 'f', description: 'Does.', parameters: { type: 'object' }, strict: true } }; // prettier-ignore

test.each<[string, Partial<GenerationRequest>, object]>([
  [
    'options',
    { options: { maxTokens: 7, temperature: 0, topP: 0.5, frequencyPenalty: 1, presencePenalty: -1, seed: 3, stop: ['x'] } }, // prettier-ignore
    { max_tokens: 7, temperature: 0, top_p: 0.5, frequency_penalty: 1, presence_penalty: -1, seed: 3, stop: ['x'] },
  ],
  ['a random seed', { options: { seed: null } }, {}],
  ['several answers', { numChoices: 2 }, { n: 2 }],
  ['a prediction', { options: { prediction: 'so' } }, { prediction: { type: 'content', content: 'so' } }],
  ['tools', { tools: [TOOL] }, { tools: [SENT_TOOL], tool_choice: 'auto' }],
  ['one call at a time', { tools: [TOOL], canCallInParallel: false }, { tools: [SENT_TOOL], tool_choice: 'auto', parallel_tool_calls: false }], // prettier-ignore
  ['one call at a time of no tool', { canCallInParallel: false }, {}],
  ['a tool to call', { tools: [TOOL], toolChoice: { name: 'f' } }, { tools: [SENT_TOOL], tool_choice: { type: 'function', function: { name: 'f' } } }], // prettier-ignore
  ['JSON', { constraint: { kind: 'json_object' } }, { response_format: { type: 'json_object' } }],
  [
    'a schema',
    { constraint: { kind: 'json_schema', name: 'x', schema: { type: 'null' }, isStrict: false } },
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'null' }, strict: false } } },
  ],
])('%s are sent in the words of chat completions', (_name, changes, expected) => {
  expect(bodyOf(changes)).toEqual({ ...PLAIN_BODY, ...expected });
});

test('calls and their results are sent; a call without arguments has an empty object', () => {
  const calls = [
    { id: 'c1', name: 'f', arguments: '' },
    { id: 'c2', name: 'f', arguments: '{"a":1}' },
  ];
  const messages = [
    { role: 'assistant', content: '', toolCalls: calls },
    { role: 'tool', content: 'done', toolCallId: 'c1', name: 'f' },
  ] as const;
  expect(bodyOf({ prompts: [messages] })).toMatchObject({
    messages: [
      {
        role: 'assistant',
        content: '',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } },
          { id: 'c2', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
        ],
      },
      { role: 'tool', content: 'done', tool_call_id: 'c1', name: 'f' },
    ],
  });
});
