// Cases after the documentation of llama-server's routes, on one built server. Formats as a whole: llama-server-routes.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

const CONTEXT = 256;
// Ordinary tokens of the vocabulary stand for the marks of a gap.
const FILL_IDS = { fim_pre_token_id: 300, fim_suf_token_id: 301, fim_mid_token_id: 302 };
const metadata = Object.entries(FILL_IDS).map(([key, value]) => ({ key: `tokenizer.ggml.${key}`, type: 'u32' as const, value })); // prettier-ignore
const GREEDY = { prompt: 'the cat', n_predict: 4, temperature: 0 };

let server: DistServer;
const send = (path: string, body: object): Promise<Response> =>
  fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const post = async (path: string, body: object, status = 200): Promise<any> => {
  const response = await send(path, body);
  const text = await response.text();
  expect([response.status, text]).toEqual([status, text]);
  return JSON.parse(text);
};
const complete = (body: object): Promise<any> => post('/completion', { ...GREEDY, ...body });
const get = async (path: string): Promise<any> => (await fetch(`${server.url}${path}`)).json();
const eventsOf = async (path: string, body: object): Promise<any[]> =>
  (await (await send(path, { ...body, stream: true })).text())
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as unknown);

describe.skipIf(!isServerBuilt)('llama-server', () => {
  beforeAll(async () => {
    server = await startDistServer({ metadata, contextLength: CONTEXT });
  });
  afterAll(async () => server[Symbol.asyncDispose]());

  describe('POST /completion', () => {
    test('takes token ids as prompt', async () => {
      const { tokens } = await post('/tokenize', { content: 'the cat', add_special: true });
      const [text, ids] = [await complete({}), await complete({ prompt: tokens })];
      expect(ids.content).toBe(text.content);
      expect(ids.tokens_evaluated).toBe(tokens.length);
    });

    test('takes texts and token ids in one list', async () => {
      const { tokens } = await post('/tokenize', { content: 'the cat', add_special: true });
      const [text, ids] = await complete({ prompt: ['the cat', tokens] });
      expect(ids.content).toBe(text.content);
    });

    test('repeats the prompt, and says that nothing of it was cut', async () => {
      expect(await complete({})).toMatchObject({ prompt: 'the cat', truncated: false });
    });

    test.each([-1, 100_000])('n_predict %i generates to the end of the context', async (numTokens) => {
      const answer = await complete({ n_predict: numTokens, ignore_eos: true });
      expect(answer.stop_type).toBe('limit');
      expect(answer.tokens_evaluated + answer.tokens_predicted).toBe(CONTEXT);
    });

    test('n_predict 0 computes the prompt into the cache', async () => {
      const prompt = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen '.repeat(3);
      expect(await complete({ prompt, n_predict: 0 })).toMatchObject({ content: '', tokens: [], tokens_predicted: 0 });
      expect((await complete({ prompt, n_predict: 1 })).tokens_cached).toBeGreaterThan(0);
    });

    test('cache_prompt false computes the whole prompt again', async () => {
      const prompt = 'a prompt that is long enough to fill more than one page of the cache, word by word. '.repeat(3);
      await complete({ prompt });
      const cached = await complete({ prompt });
      expect(cached.timings.cache_n).toBe(cached.tokens_cached);
      expect(cached.tokens_cached).toBeGreaterThan(0);
      expect((await complete({ prompt, cache_prompt: false })).tokens_cached).toBe(0);
      expect(cached.timings.prompt_n + cached.timings.cache_n).toBe(cached.tokens_evaluated);
    });

    test('the same seed gives the same text, and is reported', async () => {
      const body = { n_predict: 12, temperature: 1.5, seed: 42 };
      const [first, second] = [await complete(body), await complete(body)];
      expect(second.content).toBe(first.content);
      expect(first.generation_settings.seed).toBe(42);
    });

    test('seed -1 is a new one for each request', async () => {
      const seeds = [await complete({ seed: -1 }), await complete({ seed: -1 })].map((answer) => answer.generation_settings.seed); // prettier-ignore
      expect(seeds[0]).not.toBe(seeds[1]);
      expect(seeds.every((seed) => Number.isInteger(seed) && seed >= 0)).toBe(true);
    });

    test('top_k 1 is greedy at any temperature, and top_k 0 is off', async () => {
      expect((await complete({ temperature: 2, top_k: 1 })).content).toBe((await complete({})).content);
      expect((await complete({ top_k: 0 })).generation_settings.top_k).toBe(0);
    });

    test('reports the sampling it used, with defaults of llama-server', async () => {
      const { generation_settings: settings } = await complete({
        temperature: null,
        repeat_penalty: 1.1,
        stop: ['zz'],
      });
      expect(settings).toMatchObject({
        n_predict: 4,
        temperature: 0.8,
        top_k: 40,
        top_p: 0.95,
        min_p: 0.05,
        repeat_penalty: 1.1,
        repeat_last_n: 64,
        stop: ['zz'],
        ignore_eos: false,
      });
    });

    test('repeat_penalty makes repetitions rarer', async () => {
      const numDistinct = async (penalty: number): Promise<number> => {
        const body = { n_predict: 60, repeat_penalty: penalty, repeat_last_n: -1, ignore_eos: true };
        return new Set((await complete({ ...body, return_tokens: true })).tokens).size;
      };
      expect(await numDistinct(5)).toBeGreaterThan(await numDistinct(1));
    });

    test('stop is not part of the text, and may be one text', async () => {
      const { content } = await complete({ n_predict: 8 });
      const stop = content.slice(3, 5) as string;
      const answer = await complete({ n_predict: 8, stop });
      expect(answer).toMatchObject({ stop_type: 'word', stopping_word: stop });
      expect(answer.content).toBe(content.slice(0, content.indexOf(stop)));
    });

    test('logit_bias forces a token, forbids one, and may be an object', async () => {
      const [plain] = (await complete({ return_tokens: true })).tokens;
      const forced = await complete({ logit_bias: [[plain + 1, 100]], n_predict: 1, return_tokens: true });
      expect(forced.tokens).toEqual([plain + 1]);
      const forbidden = await complete({ logit_bias: [[plain, false]], n_predict: 1, return_tokens: true });
      expect(forbidden.tokens[0]).not.toBe(plain);
      const object = await complete({ logit_bias: { [plain + 1]: 100 }, n_predict: 1, return_tokens: true });
      expect(object.tokens).toEqual(forced.tokens);
    });

    test('grammar decides the text', async () => {
      const { content } = await complete({ grammar: 'root ::= "yes" | "no"', n_predict: 8, temperature: 1 });
      expect(['yes', 'no']).toContain(content);
    });

    test('json_schema gives an instance', async () => {
      const schema = { type: 'object', properties: { n: { type: 'integer', maximum: 9 } }, required: ['n'], additionalProperties: false }; // prettier-ignore
      const { content } = await complete({ json_schema: schema, n_predict: 40, temperature: 1 });
      const { n } = JSON.parse(content) as { n: number };
      expect(Number.isInteger(n) && n <= 9).toBe(true);
    });

    test('grammar and json_schema exclude each other', async () => {
      const refused = await post('/completion', { ...GREEDY, grammar: 'root ::= "a"', json_schema: {} }, 400);
      expect(refused.error.param).toBe('grammar');
    });

    test('n_probs gives the most probable tokens of each step, in order', async () => {
      const { completion_probabilities: steps, tokens } = await complete({ n_probs: 5, return_tokens: true });
      expect(steps.map(({ id }: { id: number }) => id)).toEqual(tokens);
      for (const { top_logprobs: top, token, bytes } of steps) {
        const logprobs = top.map(({ logprob }: { logprob: number }) => logprob);
        expect(logprobs).toEqual(logprobs.toSorted((a: number, b: number) => b - a));
        expect(logprobs.reduce((sum: number, one: number) => sum + Math.exp(one), 0)).toBeLessThanOrEqual(1.0001);
        expect(top).toHaveLength(5);
        if (!token.includes('�')) expect(bytes).toEqual([...Buffer.from(token)]);
      }
    });

    test('without n_probs there are no probabilities', async () => {
      expect(await complete({})).not.toHaveProperty('completion_probabilities');
      expect(await complete({ n_probs: 0 })).not.toHaveProperty('completion_probabilities');
    });

    test('return_tokens spell the text; without it the list is empty', async () => {
      const { content, tokens } = await complete({ n_predict: 6, return_tokens: true });
      expect((await post('/detokenize', { tokens })).content).toBe(content);
      expect((await complete({})).tokens).toEqual([]);
    });

    test('timings are consistent', async () => {
      const { timings, tokens_evaluated: numPrompt } = await complete({ cache_prompt: false });
      expect(timings).toMatchObject({ prompt_n: numPrompt, predicted_n: 4, cache_n: 0 });
      expect(timings.predicted_per_token_ms).toBeCloseTo(timings.predicted_ms / 4, 6);
      expect(timings.prompt_per_token_ms).toBeCloseTo(timings.prompt_ms / numPrompt, 6);
      expect(timings.predicted_per_second).toBeGreaterThan(0);
    });

    test('lora without adapters is the base model', async () => {
      expect((await complete({ lora: [] })).content).toBe((await complete({})).content);
    });

    test('a stream has the probabilities of its pieces and the figures at the end', async () => {
      const events = await eventsOf('/completion', { ...GREEDY, n_probs: 2 });
      const last = events.pop();
      expect(events.flatMap((event) => event.completion_probabilities)).toHaveLength(4);
      expect(events.flatMap((event) => event.tokens)).toHaveLength(4);
      expect(last).toMatchObject({ stop: true, stop_type: 'limit', tokens_predicted: 4, timings: { predicted_n: 4 } });
      expect(last).not.toHaveProperty('completion_probabilities');
    });

    test('a stream of two prompts numbers its pieces', async () => {
      const events = await eventsOf('/completion', { ...GREEDY, prompt: ['the cat', 'a dog'] });
      const textOf = (wanted: number): string =>
        events.filter(({ index }) => index === wanted).map(({ content }) => content).join(''); // prettier-ignore
      expect(textOf(0)).toBe((await complete({})).content);
      expect(textOf(1)).toBe((await complete({ prompt: 'a dog' })).content);
      expect(events.filter(({ stop }) => stop === true)).toHaveLength(2);
    });

    test('options that only llama-server has are ignored by name', async () => {
      const response = await send('/completion', { ...GREEDY, mirostat: 2, n_keep: 3, samplers: ['top_k'] });
      expect([response.status, response.headers.get('x-ignored-fields')]).toEqual([200, 'mirostat, n_keep, samplers']);
    });

    test.each([
      [{ prompt: undefined }, 'prompt'],
      [{ prompt: { text: 'x' } }, 'prompt'],
      [{ n_predict: 'many' }, 'n_predict'],
      [{ temperature: -1 }, 'temperature'],
      [{ logit_bias: 'x' }, 'logit_bias'],
      [{ grammar: 'root ::= [' }, 'grammar'],
    ])('refuses %j and names the field', async (more, param) => {
      const { error } = await post('/completion', { ...GREEDY, ...more }, 400);
      expect(error).toMatchObject({ type: 'invalid_request_error', message: expect.any(String), param });
    });

    test('a prompt longer than the context is an error with both numbers', async () => {
      const { error } = await post('/completion', { ...GREEDY, prompt: 'cat dog '.repeat(600) }, 400);
      expect(error.code).toBe('context_length_exceeded');
      expect(error.message).toContain(String(CONTEXT));
    });
  });

  describe('POST /infill', () => {
    const gap = { input_prefix: 'one', input_suffix: 'three', n_predict: 4, temperature: 0 };

    test('streams', async () => {
      const events = await eventsOf('/infill', gap);
      expect(events.map(({ content }) => content).join('')).toBe((await post('/infill', gap)).content);
      expect(events.at(-1)).toMatchObject({ stop: true, stop_type: 'limit' });
    });

    test('prefix and suffix may be empty, and are different prompts', async () => {
      const body = { ...gap, cache_prompt: false };
      const sizes = await Promise.all([{}, { input_prefix: '' }, { input_suffix: '' }].map(async (more) => (await post('/infill', { ...body, ...more })).tokens_evaluated)); // prettier-ignore
      expect(sizes[1]).toBeLessThan(sizes[0]);
      expect(sizes[2]).toBeLessThan(sizes[0]);
    });
  });

  test('suffix of other routes fills the same gap', async () => {
    const { content } = await post('/infill', {
      input_prefix: 'one',
      input_suffix: 'three',
      n_predict: 4,
      temperature: 0,
    });
    const ollama = { model: 'random', prompt: 'one', suffix: 'three', stream: false, options: { num_predict: 4, temperature: 0 } }; // prettier-ignore
    expect((await post('/api/generate', ollama)).response).toBe(content);
    const openai = { prompt: 'one', suffix: 'three', max_tokens: 4, temperature: 0 };
    expect((await post('/completions', openai)).choices[0].text).toBe(content);
  });

  test('POST /tokenize: special tokens only if asked for, and pieces that spell the text', async () => {
    const { tokens } = await post('/tokenize', { content: 'the cat' });
    const special = await post('/tokenize', { content: 'the cat', add_special: true });
    expect(special.tokens).toEqual([server.model.tokenizer.bosId, ...tokens]);
    const { tokens: pieces } = await post('/tokenize', { content: 'the cat', with_pieces: true });
    expect(pieces.map(({ id }: { id: number }) => id)).toEqual(tokens);
    expect(pieces.map(({ piece }: { piece: string }) => piece).join('')).toContain('cat');
  });

  test('POST /detokenize: the inverse, and an error for unknown tokens', async () => {
    const { tokens } = await post('/tokenize', { content: 'the cat sat' });
    expect((await post('/detokenize', { tokens })).content).toBe('the cat sat');
    expect((await post('/detokenize', { tokens: [2_000_000] }, 400)).error.param).toBe('tokens[0]');
  });

  test('POST /apply-template: the prompt of a chat, which completes to the same answer', async () => {
    const messages = [{ role: 'user', content: 'hi' }];
    const { prompt, tokens } = await post('/apply-template', { messages });
    expect(prompt).toContain('hi');
    const chat = await post('/chat/completions', { messages, max_tokens: 3, temperature: 0 });
    expect((await complete({ prompt: tokens, n_predict: 3 })).content).toBe(chat.choices[0].message.content);
  });

  test('GET /health, GET /models and GET /metrics', async () => {
    expect(await get('/health')).toEqual({ status: 'ok' });
    expect(await get('/models')).toMatchObject({ object: 'list', data: [{ id: 'random', object: 'model' }] });
    expect(await get('/v1/models')).toEqual(await get('/models'));
    expect(await (await fetch(`${server.url}/metrics`)).text()).toMatch(/^# HELP /);
  });

  test('POST /v1/chat/completions: grammar, and the spellings of sampling', async () => {
    const messages = [{ role: 'user', content: 'hi' }];
    const { choices } = await post('/v1/chat/completions', { messages, grammar: 'root ::= "yes"', n_predict: 4 });
    expect(choices[0].message.content).toBe('yes');
    const response = await send('/v1/chat/completions', { messages, n_predict: 1, repeat_penalty: 1.1, top_k: 5, min_p: 0.1, typical_p: 0.9, cache_prompt: true }); // prettier-ignore
    expect([response.status, response.headers.get('x-ignored-fields')]).toEqual([200, null]);
  });
});
