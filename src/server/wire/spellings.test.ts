// Names of settings in other servers' APIs.
import { describe, expect, test } from 'vitest';
import { createHostedEcho } from '../../../test/support/scripted-model.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import type { GenerateOptions } from '../../runtime/generate-options.ts';

interface Outcome {
  readonly status: number;
  readonly ignored: string | null;
  readonly options: GenerateOptions;
  readonly error: { readonly message: string; readonly param: string } | undefined;
}

const schema = { type: 'object', properties: { a: { type: 'integer' } } };
const messages = [{ role: 'user', content: 'hi there' }];

async function ask(more: object, path = '/v1/chat/completions'): Promise<Outcome> {
  const model = createHostedEcho(100);
  const { fetch } = createTestServer([entryOf('echo', async () => model)]);
  const body = { model: 'echo', ...(path === '/v1/completions' ? { prompt: 'hi' } : { messages }), ...more };
  const response = await fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  );
  const { error } = (await response.json()) as Pick<Outcome, 'error'>;
  const ignored = response.headers.get('x-ignored-fields');
  return { status: response.status, ignored, options: model.calls[0]?.options ?? {}, error };
}

describe('[S10] one setting, several names', () => {
  test.each<[object, Partial<GenerateOptions>]>([
    [{ n_predict: 7 }, { maxTokens: 7 }],
    [{ max_completion_tokens: 7, max_tokens: 7 }, { maxTokens: 7 }],
    [{ max_tokens: 1e12 }, { maxTokens: 2 ** 20, clampMaxTokens: true }],
    [{ max_tokens: -1 }, { maxTokens: 2 ** 20, clampMaxTokens: true }],
    [{ repeat_penalty: 1.1 }, { repetitionPenalty: 1.1 }],
    [
      { repetition_penalty: 1.1, repeat_last_n: 8 },
      { repetitionPenalty: 1.1, penaltyWindow: 8 },
    ],
    [{ random_seed: 3 }, { seed: 3 }],
    [{ cache_prompt: false }, { cachePrefix: false }],
    [{ top_k: -1 }, { topK: 0 }],
    [
      { min_tokens: 2, stop_token_ids: [1, 2] },
      { minTokens: 2, stopTokenIds: [1, 2] },
    ],
    [{ ignore_eos: true }, { ignoreEos: true }],
    [{ enable_thinking: true }, { reasoning: 'on' }],
    [{ enable_thinking: false, reasoning_effort: 'none' }, { reasoning: 'none' }],
    [{ chat_template_kwargs: { enable_thinking: false } }, { templateVariables: { enable_thinking: false } }],
    [{ guided_regex: 'a+' }, { grammar: { type: 'regex', pattern: 'a+' } }],
    [{ guided_choice: ['a.b', 'c'] }, { grammar: { type: 'regex', pattern: '(?:a\\.b|c)' } }],
    [{ guided_grammar: 'root ::= "a"' }, { grammar: { type: 'gbnf', text: 'root ::= "a"' } }],
    [{ structured_outputs: { regex: 'a+' } }, { grammar: { type: 'regex', pattern: 'a+' } }],
    [{ structured_outputs: { json_object: true } }, { grammar: { type: 'json_object' } }],
    [{ response_format: { type: 'regex', value: 'a+' } }, { grammar: { type: 'regex', pattern: 'a+' } }],
    ...[
      { guided_json: schema },
      { guided_json: JSON.stringify(schema) },
      { json_schema: schema },
      { structured_outputs: { json: schema } },
      { response_format: { type: 'json_object', schema } },
      { response_format: { type: 'json', value: schema } },
      { response_format: { type: 'json_schema', schema } },
      { response_format: { type: 'json_schema', json_schema: { schema } } },
      { response_format: { type: 'json_schema', value: { name: 'a', schema } } },
      { guided_json: schema, json_schema: schema },
    ].map((more): [object, Partial<GenerateOptions>] => [
      more,
      { grammar: { type: 'json_schema', schema, strict: false } },
    ]),
  ])('%j', async (more, options) => {
    const outcome = await ask(more);
    expect(outcome).toMatchObject({ status: 200, ignored: null, options });
  });

  test.each([
    [{ max_tokens: 5, max_completion_tokens: 6 }, 'max_completion_tokens', 'max_tokens'],
    [{ max_tokens: 5, n_predict: -1 }, 'max_tokens', 'n_predict'],
    [{ seed: 1, random_seed: 2 }, 'seed', 'random_seed'],
    [{ repetition_penalty: 1, repeat_penalty: 2 }, 'repetition_penalty', 'repeat_penalty'],
    [{ cache_prefix: true, cache_prompt: false }, 'cache_prefix', 'cache_prompt'],
    [{ grammar: 'root ::= "a"', guided_regex: 'a' }, 'grammar', 'guided_regex'],
    [{ guided_json: schema, response_format: { type: 'json_object' } }, 'response_format', 'guided_json'],
    [{ reasoning_effort: 'high', enable_thinking: false }, 'reasoning_effort', 'enable_thinking'],
    [{ tools: [], functions: [{ name: 'f' }] }, 'tools', 'functions'],
  ])('%j is a 400 that names both', async (more, first, second) => {
    const { status, error } = await ask(more);
    expect(status).toBe(400);
    expect(error!.message).toContain(`'${first}' and '${second}'`);
    expect(error!.param).toBe(second);
  });

  test.each([
    [{ guided_json: 'no JSON' }, 'guided_json'],
    [{ guided_choice: [] }, 'guided_choice'],
    [{ structured_outputs: { regex: 'a', choice: ['b'] } }, 'structured_outputs'],
    [{ response_format: { type: 'json' } }, 'response_format.value'],
    [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [{ stop_token_ids: [-1] }, 'stop_token_ids[0]'],
    [{ max_tokens: 0 }, 'max_tokens'],
  ])('%j is a 400', async (more, param) => {
    expect(await ask(more)).toMatchObject({ status: 400, error: { param } });
  });

  test('completions have them, too; -1 is as many tokens as fit', async () => {
    expect((await ask({}, '/v1/completions')).options).toMatchObject({ maxTokens: 16 });
    expect((await ask({ n_predict: 3 }, '/v1/completions')).options).toMatchObject({ maxTokens: 3 });
    expect((await ask({ max_tokens: -1 }, '/v1/completions')).options).toMatchObject({ maxTokens: 2 ** 20 });
  });

  test('a prompt longer than the context is still a 400', async () => {
    const long = [{ role: 'user', content: 'word '.repeat(101) }];
    expect(await ask({ messages: long, max_tokens: -1 })).toMatchObject({ status: 400 });
  });
});
