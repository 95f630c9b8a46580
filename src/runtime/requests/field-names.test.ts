import { expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { describeFailure } from '../../server/errors.ts';
import { inFieldNames } from './field-names.ts';
import { type GenerationRequest, PLAIN_REQUEST } from './generation-request.ts';

const CHAT = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 4 };
const SCHEMA = { type: 'object', $schema: 'https://example.com/unknown' };
const FORMAT = { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA, strict: true } };
const TOOL = { type: 'function', function: { name: 'f', parameters: SCHEMA, strict: true } };
const LONG = 'x'.repeat(20);

test.each([
  ['/v1/chat/completions', { ...CHAT, regex: LONG }, 'max_tokens', "'max_tokens' is 4"],
  ['/v1/chat/completions', { messages: CHAT.messages, max_completion_tokens: 3, regex: LONG }, 'max_completion_tokens', "'max_completion_tokens' is 3"], // prettier-ignore
  ['/v1/completions', { prompt: 'a', max_tokens: 2, regex: LONG }, 'max_tokens', "'max_tokens' is 2"],
  ['/v1/completions', { prompt: 'a', max_tokens: 0 }, 'max_tokens', "at least 1 without 'echo'"],
  ['/v1/completions', { prompt: 'a', n_predict: 2, regex: LONG }, 'n_predict', "'n_predict' is 2"],
  ['/v1/chat/completions', { ...CHAT, logit_bias: { 9999999: 1 } }, 'logit_bias', "'logit_bias' names token 9999999"],
  ['/v1/chat/completions', { ...CHAT, chat_template_kwargs: { messages: 1 } }, 'chat_template_kwargs', "'chat_template_kwargs'"], // prettier-ignore
  ['/v1/chat/completions', { ...CHAT, response_format: FORMAT }, 'response_format', 'grammar: $schema'],
  ['/v1/chat/completions', { ...CHAT, regex: '(' }, 'regex', 'grammar: '],
  ['/v1/chat/completions', { ...CHAT, grammar: 'root ::= (' }, 'grammar', 'grammar: '],
  ['/v1/responses', { input: 'a', text: { format: { type: 'json_schema', name: 'x', schema: SCHEMA, strict: true } } }, 'text.format', 'grammar: $schema'], // prettier-ignore
  ['/v1/chat/completions', { ...CHAT, tools: [TOOL], tool_choice: 'required' }, 'tools', 'grammar: $schema'],
])('[S4] %s %j is refused in the words of the request', async (path, body, param, words) => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  const response = await fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'toy', ...body }),
    }),
  );
  const { error } = (await response.json()) as { error: { message: string; param: string | null } };
  expect(error).toMatchObject({ param, message: expect.stringContaining(words) });
  expect(error.message).not.toMatch(/maxTokens|logitBias|templateVariables|toolCalls|option "/);
  expect(response.status).toBeLessThan(500);
});

test('[S4] a call of an earlier turn is named as the wire names it', () => {
  const error = new RuvLLMError(
    'invalid_option',
    'messages[1].toolCalls[0] ("toolCalls[0]"): arguments must be a JSON object',
  );
  expect(describeFailure(error).message).toBe(
    'messages[1].tool_calls[0] ("toolCalls[0]"): arguments must be a JSON object',
  );
});

const refused = (message: string, option?: string): RuvLLMError =>
  new RuvLLMError('invalid_option', message, { data: { limit: 3, ...(option === undefined ? {} : { option }) }, isRetryable: true }); // prettier-ignore
const requestOf = (changes: Partial<GenerationRequest>): GenerationRequest => ({ ...PLAIN_REQUEST, model: 'm', prompts: ['a'], options: {}, ...changes }); // prettier-ignore
const NAMED = requestOf({ fieldNames: { maxTokens: 'num_predict', grammar: 'format' } });

test('[S4] an option is renamed in message and data, and everything else stays', () => {
  const error = inFieldNames(refused('option "maxTokens" is 4', 'maxTokens'), NAMED) as RuvLLMError;
  expect(error).toMatchObject({
    code: 'invalid_option',
    message: "'num_predict' is 4",
    data: { limit: 3, option: 'num_predict' },
    isRetryable: true,
  });
});

const JSON_OBJECT = { constraint: { kind: 'json_object' } } as const;
const TOOLS = { tools: [{ name: 'f', description: null, parameters: null, isStrict: true }] };

test.each<[string, RuvLLMError, Partial<GenerationRequest>, string | null]>([
  ['of a constraint', refused('grammar: no'), JSON_OBJECT, 'grammar'],
  [
    'of a constraint with a name',
    refused('grammar: no'),
    { ...JSON_OBJECT, fieldNames: { grammar: 'format' } },
    'format',
  ],
  ['that is not supported', new RuvLLMError('unsupported', 'grammar: no'), JSON_OBJECT, 'grammar'],
  ['of tools', refused('grammar: no'), TOOLS, 'tools'],
  ['of either', refused('grammar: no'), { ...JSON_OBJECT, ...TOOLS }, null],
  ['of neither', refused('grammar: no'), {}, null],
  ['that is internal', new RuvLLMError('internal', 'grammar: no'), JSON_OBJECT, null],
  ['about something else', refused('no grammar: '), JSON_OBJECT, null],
])('[S4] an error in a grammar %s names where it is', (_name, error, changes, option) => {
  const renamed = inFieldNames(error, requestOf(changes));
  if (option === null) expect(renamed).toBe(error);
  else expect(renamed).toMatchObject({ code: error.code, data: { option } });
});

test.each<[string, unknown]>([
  ['without a name in the request', refused('option "seed" is bad', 'seed')],
  ['with a name that every object has', refused('option "constructor" is bad', 'constructor')],
  ['without an option', refused('bad')],
  ['that is not ours', Object.assign(new Error('bad'), { data: { option: 'maxTokens' } })],
])('[S4] an error %s stays as it is', (_name, error) => {
  expect(inFieldNames(error, NAMED)).toBe(error);
});
