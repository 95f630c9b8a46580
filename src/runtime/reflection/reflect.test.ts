import { describe, expect, test } from 'vitest';
import { createSpokenModel, type SpokenModelOptions } from '../../../test/support/spoken-model.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { CheckedAnswer } from './types.ts';

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 7 } },
  required: ['city'],
  additionalProperties: false,
};
const tools = [{ type: 'function' as const, function: { name: 'weather', parameters } }];
const callOf = (args: string): string => `<tool_call>\n{"name": "weather", "arguments": ${args}}\n</tool_call>`;
const messages = [{ role: 'user', content: 'How is it in Rome?' }];
/** The grammar is refused, so that calls are only read: as for a schema that no grammar can enforce. */
const LOOSE: SpokenModelOptions = { refusal: new RuvLLMError('unsupported', 'too hard') };

function setUp(answers: readonly string[], options: SpokenModelOptions = LOOSE) {
  const { model, requests } = createSpokenModel(answers, options);
  /** Attempts that were answered; a refused grammar is not one. */
  const prompts = (): string[] => requests.filter(({ grammar }) => options.refusal === undefined || grammar === null).map(({ prompt }) => prompt); // prettier-ignore
  const ask = (given: GenerateOptions = {}) => model.generate(messages, { tools, reflection: true, ...given });
  return { model, ask, prompts };
}

describe('[RF1] an answer that passes', () => {
  test('is returned after one attempt', async () => {
    const { ask, prompts } = setUp([callOf('{"city": "Rome"}')]);
    const { toolCalls, reflection, usage } = await ask();
    expect(toolCalls[0]).toMatchObject({ name: 'weather', arguments: '{"city": "Rome"}' });
    expect(reflection).toMatchObject({ ending: 'accepted', chosen: 0, error: null });
    expect([prompts().length, usage.discardedTokens]).toEqual([1, 0]);
  });

  test('has no report without the option', async () => {
    const answer = await setUp([callOf('{"town": 1}')]).ask({ reflection: false });
    expect(answer.reflection).toBeUndefined();
    expect(answer.usage.discardedTokens).toBeUndefined();
  });
});

describe('[RF2] a retry', () => {
  test('sees the last attempt and its error, and only its answer is streamed', async () => {
    const { model, prompts } = setUp([callOf('{"town": "Rome"}'), callOf('{"city": "Rome"}')]);
    const chunks = [];
    for await (const chunk of model.generateStream(messages, { tools, reflection: true })) chunks.push(chunk);
    const said = chunks.flatMap(({ toolCalls }) => toolCalls.map(({ arguments: args }) => args)).join('');
    expect(said).toBe('{"city": "Rome"}');
    const [first, second] = prompts();
    expect(second!.startsWith(first!.slice(0, -'<|im_start|>assistant\n'.length))).toBe(true);
    expect(second).toContain('"town"');
    expect(second).toContain('the call of weather: "city" is missing');
    expect(second).toContain('"town" is not allowed');
  });

  test('of a small model asks again, unless that would repeat the answer or the caller decides', async () => {
    const attempts = ['{"town": 1}', '{"town": 2}', '{"town": 3}', '{"town": 4}'].map(callOf);
    const distinct = async (given: GenerateOptions, size: 'small' | 'medium' = 'small') => {
      const { ask, prompts } = setUp(attempts, { ...LOOSE, size });
      await ask({ temperature: 0.7, reflection: { minGain: 0 }, ...given });
      return new Set(prompts()).size;
    };
    expect(await distinct({})).toBe(1);
    expect(await distinct({}, 'medium')).toBe(4);
    expect(await distinct({ temperature: 0 })).toBe(4);
    expect(await distinct({ reflection: { minGain: 0, showsErrors: true } })).toBe(4);
  });

  test('without errors repeats the request, as a control', async () => {
    const { ask, prompts } = setUp([callOf('{"town": 1}')]);
    await ask({ reflection: { showsErrors: false, minGain: 0 } });
    expect(new Set(prompts()).size).toBe(1);
    expect(prompts().length).toBe(4);
  });

  test('has a seed of its own, and the report the first one', async () => {
    const { model, requests } = createSpokenModel([callOf('{"town": 1}'), callOf('{"city": "Rome"}')], LOOSE);
    const { seed } = await model.generate(messages, { tools, seed: 40, reflection: true });
    const seeds = requests.filter(({ grammar }) => grammar === null).map(({ sampling }) => sampling.seed);
    expect([seed, seeds]).toEqual([40, [40, 41]]);
  });
});

describe('[RF3] retries end', () => {
  test('after three, with the best attempt and its error', async () => {
    const worse = ['{"town": 1}', '{"city": 1}', '{"town": "a", "where": "b", "city": 3}', '{"town": "x", "city": 2}'];
    const { ask, prompts } = setUp(worse.map(callOf));
    const { reflection, toolCalls } = await ask({ reflection: { minGain: 0 } });
    expect(prompts().length).toBe(4);
    expect(reflection).toMatchObject({ ending: 'exhausted', chosen: 1, error: expect.stringContaining('"city" must be of type string') }); // prettier-ignore
    expect(toolCalls[0]!.arguments).toBe('{"city": 1}');
    expect(reflection!.attempts).toHaveLength(4);
  });

  test('with a repeated answer, at once', async () => {
    const { ask, prompts } = setUp([callOf('{"town": 1}'), callOf('{"city": 1}'), callOf('{"town": 1}')]);
    const { reflection } = await ask();
    expect([reflection!.ending, prompts().length]).toEqual(['cycle', 3]);
  });

  test('after two in a row without a gain', async () => {
    const { ask } = setUp([callOf('{"town": 1}'), callOf('{"town": 2}'), callOf('{"town": 3}'), callOf('{"town": 4}')]);
    const { reflection } = await ask();
    expect([reflection!.ending, reflection!.attempts.length]).toEqual(['no-gain', 3]);
  });

  test('where a retry has no room; the answer is the first attempt', async () => {
    const { model, prompts } = setUp(['{"name": "weather"'], { ...LOOSE, maxContext: 420 });
    const { reflection, text } = await model.generate(messages, { tools, reflection: true, maxTokens: 60 });
    expect([reflection!.ending, prompts().length, text]).toEqual(['no-room', 1, '{"name": "weather"']);
  });

  test('an error of another kind reaches the caller', async () => {
    const check = (): never => {
      throw new Error('the check is broken');
    };
    await expect(setUp(['Sunny.']).ask({ reflection: { check } })).rejects.toThrow('the check is broken');
  });
});

describe('[RF4] checks', () => {
  const errorOf = async (answer: string, given: GenerateOptions = {}): Promise<string | null> =>
    (await setUp([answer]).ask({ reflection: { maxRetries: 1 }, ...given })).reflection!.error;

  test.each([
    ['{"city": "", "days": 1}', null],
    ['{"city": ""}', 'all 1 values are empty'],
    ['{"city": "Rome", "days": 9}', 'does not fit the schema'],
    ['{"city": "Rome", "days": "2"}', '"days" must be of type integer'],
    [`{"city": "${'so it is '.repeat(9)}"}`, 'repeats the same words'],
  ])('a call with %s: %s', async (args, error) => {
    const found = await errorOf(callOf(args));
    if (error === null) expect(found).toBeNull();
    else expect(found).toContain(error);
  });

  test('members in any order fit a schema', async () => {
    expect(await errorOf(callOf('{"days": 2, "city": "Rome"}'))).toBeNull();
  });

  test('an empty answer and a loop fail; a text passes', async () => {
    expect(await errorOf(' ')).toContain('empty');
    expect(await errorOf('I do not know. '.repeat(9))).toContain('repeats');
    expect(await errorOf('It is sunny in Rome.')).toBeNull();
  });

  test('required JSON that says nothing is no success', async () => {
    const { model } = createSpokenModel(['{"a": "", "b": null}', '{"a": "x", "b": null}']);
    const grammar = { type: 'json_object' } as const;
    const { text, reflection } = await model.generate(messages, { grammar, reflection: true });
    expect([text, reflection!.attempts[0]!.error]).toEqual(['{"a": "x", "b": null}', 'it is valid, but all 2 values are empty']); // prettier-ignore
  });

  test('the caller’s own check decides last, and the model reads its error', async () => {
    const seen: CheckedAnswer[] = [];
    const check = (answer: CheckedAnswer): string | null => {
      seen.push(answer);
      return answer.text.includes('Celsius') ? null : 'the unit is missing';
    };
    const { ask, prompts } = setUp(['20 degrees', '20 degrees Celsius']);
    const { text } = await ask({ reflection: { check } });
    expect([text, seen.length]).toEqual(['20 degrees Celsius', 2]);
    expect(prompts()[1]).toContain('- the unit is missing');
  });
});

test.each([
  ['{"tool": "weather", "arguments": {"city": "Rome"}}', false],
  ['weather(city="Rome")', false],
  ['I call `weather`: {"city": "Rome"}', false],
  ['The weather is fine.', true],
  ['I like {curly} brackets.', true],
])('[RF5] %s: an answer: %s', async (text, isAnswer) => {
  const { reflection } = await setUp([text]).ask({ reflection: { maxRetries: 1 } });
  expect(reflection!.attempts[0]!.error === null).toBe(isAnswer);
});

test('[RF6] the usage has the tokens of all attempts, and names those of discarded ones', async () => {
  const answers = [callOf('{"town": "Rome"}'), callOf('{"city": "Rome"}')];
  const { reflection, usage } = await setUp(answers).ask();
  const [first, second] = reflection!.attempts;
  expect(usage.completionTokens).toBe(first!.completionTokens + second!.completionTokens);
  expect(usage.promptTokens).toBe(first!.promptTokens + second!.promptTokens);
  expect(usage.totalTokens).toBe(usage.promptTokens + usage.completionTokens);
  expect(usage.discardedTokens).toBe(first!.completionTokens);
});

test('[RF8] prompts without turns are refused, and so are settings out of range', async () => {
  const { model } = setUp(['a']);
  await expect(model.generate('a text', { reflection: true })).rejects.toThrow('requires messages');
  await expect(model.session('s').generate('a text', { reflection: true })).rejects.toThrow('requires messages');
  const continued = [...messages, { role: 'assistant', content: 'It' }];
  await expect(model.generate(continued, { reflection: true, continueFinalMessage: true })).rejects.toThrow('new turn');
  await expect(model.generate(messages, { reflection: { maxRetries: 4 } })).rejects.toThrow('reflection.maxRetries');
  await expect(model.generate(messages, { reflection: { retries: 1 } as never })).rejects.toThrow('unknown option');
});

test('[RF9] low confidence is retried only on request, and is named where it stays', async () => {
  // The scripted model says that each token has the log-probability -1.
  expect((await setUp(['Sunny.']).ask()).reflection!.attempts).toHaveLength(1);
  const { reflection, logprobs } = await setUp(['Sunny.', 'Rainy.']).ask({ reflection: { minConfidence: 0.99, maxRetries: 1 } }); // prettier-ignore
  expect(reflection).toMatchObject({ ending: 'exhausted', chosen: 0, error: expect.stringMatching(/^confidence 0\.\d\d is below 0\.99$/) }); // prettier-ignore
  expect(logprobs).toBeNull();
});
