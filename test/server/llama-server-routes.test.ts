// llama-server's own routes, as its clients call them, on the built server.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMemorySource, openGguf } from '../../src/gguf/index.ts';
import { readShape } from '../../src/models/shape.ts';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';
import { randomAdapter } from '../support/random-adapter.ts';
import { buildRandomModel } from '../support/random-model.ts';

// Ordinary tokens of the vocabulary stand for the marks of a gap.
const FILL_IDS = { fim_pre_token_id: 300, fim_suf_token_id: 301, fim_mid_token_id: 302 };
const metadata = Object.entries(FILL_IDS).map(([key, value]) => ({ key: `tokenizer.ggml.${key}`, type: 'u32' as const, value })); // prettier-ignore

let server: DistServer;
const post = async (path: string, body: object, status = 200): Promise<any> => {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect([response.status, text]).toEqual([status, text]);
  return JSON.parse(text);
};

describe.skipIf(!isServerBuilt)('llama-server routes', () => {
  beforeAll(async () => {
    server = await startDistServer({ metadata });
  });
  afterAll(async () => server[Symbol.asyncDispose]());

  test('POST /completion: the text, the reason of its end and the timings', async () => {
    const body = { prompt: 'the cat', n_predict: 4, temperature: 0, return_tokens: true };
    const answer = await post('/completion', body);
    expect(answer).toMatchObject({ index: 0, stop: true, stop_type: 'limit', tokens_predicted: 4, model: 'random' });
    expect(answer.tokens).toHaveLength(4);
    expect(answer.timings).toMatchObject({ predicted_n: 4, prompt_n: answer.tokens_evaluated });
    const again = await post('/completion', body);
    expect(again.content).toBe(answer.content);
    const openai = await post('/v1/completions', { model: 'random', prompt: 'the cat', max_tokens: 4, temperature: 0 });
    expect(openai.choices[0].text).toBe(answer.content);
  });

  test('POST /completion: a stop string, n_predict 0, several prompts and probabilities', async () => {
    const { content } = await post('/completion', { prompt: 'the cat', n_predict: 8, temperature: 0 });
    const stop = content.slice(2, 4) as string;
    const stopped = await post('/completion', { prompt: 'the cat', n_predict: 8, temperature: 0, stop: [stop] });
    expect(stopped).toMatchObject({ stop_type: 'word', stopping_word: stop });
    expect(content.startsWith(stopped.content)).toBe(true);
    const nothing = await post('/completion', { prompt: 'the cat', n_predict: 0 });
    expect(nothing).toMatchObject({ content: '', tokens_predicted: 0 });
    const both = await post('/completion', { prompt: ['the cat', 'a dog'], n_predict: 2, temperature: 0 });
    expect(both.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
    const { completion_probabilities: tokens } = await post('/completion', {
      prompt: 'the cat',
      n_predict: 2,
      temperature: 0,
      n_probs: 3,
    });
    expect(tokens).toHaveLength(2);
    expect(tokens[0].top_logprobs).toHaveLength(3);
    expect(tokens[0].id).toBe(tokens[0].top_logprobs[0].id);
  });

  test('POST /completion as a stream: pieces, then the end with the figures', async () => {
    const response = await fetch(`${server.url}/completion`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'the cat', n_predict: 4, temperature: 0, stream: true }),
    });
    const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '));
    const pieces = lines.map((line) => JSON.parse(line.slice(6)) as { content: string; stop: boolean });
    const { content } = await post('/completion', { prompt: 'the cat', n_predict: 4, temperature: 0 });
    expect(pieces.map((piece) => piece.content).join('')).toBe(content);
    expect(pieces.map(({ stop }) => stop)).toEqual([...pieces.slice(1).map(() => false), true]);
  });

  test('POST /infill and suffix: prefix, suffix and the start of the gap behind their marks', async () => {
    const bare = { n_predict: 3, temperature: 0, return_tokens: true };
    const { tokenizer } = server.model;
    const encode = (text: string): number[] => tokenizer.encode(text, { isContinuation: true });
    const ids = [tokenizer.bosId!, 300, ...encode('one'), 301, ...encode('three'), 302];
    const expected = await post('/completion', { ...bare, prompt: ids });
    const filled = await post('/infill', { ...bare, input_prefix: 'one', input_suffix: 'three' });
    expect(filled.tokens).toEqual(expected.tokens);
    expect(filled.tokens_evaluated).toBe(ids.length);
    const begun = await post('/infill', { ...bare, input_prefix: 'one', input_suffix: 'three', prompt: 'two' });
    expect(begun.tokens_evaluated).toBe(ids.length + encode('two').length);
    const extra = [{ filename: 'a.txt', text: 'zero' }];
    const more = await post('/infill', { ...bare, input_prefix: 'one', input_suffix: 'three', input_extra: extra });
    expect(more.tokens_evaluated).toBe(ids.length + encode('a.txt\nzero\n\n').length);
    const suffix = { model: 'random', prompt: 'one', suffix: 'three', max_tokens: 3, temperature: 0 };
    expect((await post('/v1/completions', suffix)).choices[0].text).toBe(expected.content);
    const library = await server.model.generate('one', { fill: { suffix: 'three' }, maxTokens: 3, temperature: 0 });
    expect(library.tokenIds).toEqual(expected.tokens);
    expect(await post('/infill', { ...bare, input_prefix: 'one' }, 400)).toMatchObject({
      error: { param: 'input_suffix' },
    });
  });

  test('echo with logprobs: each token of the prompt as if it had been generated', async () => {
    const { tokenizer } = server.model;
    const generated = await post('/v1/completions', { model: 'random', prompt: 'the cat', max_tokens: 5, temperature: 0, logprobs: 2 }); // prettier-ignore
    const native = await post('/completion', { prompt: 'the cat', n_predict: 5, temperature: 0, return_tokens: true });
    const prompt = [...server.model.encodePrompt('the cat'), ...(native.tokens as number[])];
    const scored = await post('/v1/completions', { model: 'random', prompt, max_tokens: 0, echo: true, logprobs: 2 });
    const [choice] = scored.choices;
    expect(scored.usage).toMatchObject({ prompt_tokens: prompt.length, completion_tokens: 0 });
    expect(choice.logprobs.token_logprobs).toHaveLength(prompt.length);
    expect(choice.logprobs.token_logprobs[0]).toBe(null);
    const tail = choice.logprobs.token_logprobs.slice(-5) as number[];
    tail.forEach((logprob, i) => expect(logprob).toBeCloseTo(generated.choices[0].logprobs.token_logprobs[i], 4));
    expect(choice.logprobs.top_logprobs.at(-1)).toEqual(
      Object.fromEntries(
        Object.entries(generated.choices[0].logprobs.top_logprobs.at(-1)).map(([token, logprob]) => [token, expect.closeTo(logprob as number, 4)]), // prettier-ignore
      ),
    );
    // A text: without the BOS that was added, and with the answer behind it.
    const text = await post('/v1/completions', { model: 'random', prompt: 'the cat', max_tokens: 1, temperature: 0, echo: true, logprobs: 1 }); // prettier-ignore
    expect(text.choices[0].text.startsWith('the cat')).toBe(true);
    expect(text.choices[0].logprobs.tokens).toHaveLength(tokenizer.encode('the cat').length + 1);
    expect(text.choices[0].logprobs.token_logprobs.every((logprob: unknown) => typeof logprob === 'number')).toBe(true);
  });

  test('GET /props: context and default sampling', async () => {
    const props = (await (await fetch(`${server.url}/props`)).json()) as object;
    expect(props).toMatchObject({
      model_alias: 'random',
      modalities: { vision: false },
      default_generation_settings: { n_ctx: 512, params: { temperature: 0.7, min_p: 0.05 } },
    });
  });

  test('paths without /v1, timings in answers, adapters by number', async () => {
    const chat = { model: 'random', messages: [{ role: 'user', content: 'hi' }], max_tokens: 2 };
    expect((await post('/chat/completions', chat)).timings.predicted_n).toBe(2);
    expect((await post('/completions', { model: 'random', prompt: 'hi', max_tokens: 2 })).timings.predicted_n).toBe(2);
    expect((await (await fetch(`${server.url}/models`)).json()).data[0].id).toBe('random');
    expect((await post('/embeddings', { model: 'random', input: 'hi' })).data).toHaveLength(1);
    expect(await (await fetch(`${server.url}/lora-adapters`)).json()).toEqual([]);
    const refused = await post('/completion', { prompt: 'hi', n_predict: 1, lora: [{ id: 0, scale: 1 }] }, 400);
    expect(refused).toMatchObject({ error: { code: 'adapter_not_found' } });
  });

  test('POST /lora-adapters: scales for all requests that choose no adapter', async () => {
    const file = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape: { contextLength: 512 } });
    const base = readShape(openGguf(createMemorySource(file)));
    for (const [seed, name] of ['one', 'two'].entries()) {
      await server.model.loadAdapter(await randomAdapter(base, { seed, rank: 4 }), { name });
    }
    const ask = async (more: object = {}): Promise<number[]> =>
      (await post('/completion', { prompt: 'the cat', n_predict: 8, temperature: 0, return_tokens: true, ...more }))
        .tokens;
    const chat = async (more: object = {}): Promise<string> =>
      (await post('/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }], max_tokens: 8, temperature: 0, ...more })).choices[0].message.content; // prettier-ignore
    const list = async () => (await fetch(`${server.url}/lora-adapters`)).json();
    const [plain, scaled] = [await ask(), await ask({ lora: [{ id: 0, scale: 0.5 }] })];
    const scaledChat = await chat({ adapter: [{ name: 'one', scale: 0.5 }] });
    expect(scaled).not.toEqual(plain);

    expect(await post('/lora-adapters', [{ id: 0, scale: 0.5 }])).toEqual({ success: true });
    expect(await list()).toEqual([{ id: 0, path: 'one', scale: 0.5 }, { id: 1, path: 'two', scale: 0 }]); // prettier-ignore
    expect(await ask()).toEqual(scaled);
    expect(await chat()).toBe(scaledChat);
    expect(await ask({ lora: [] })).toEqual(plain);
    expect(await ask({ model: 'random:two' })).toEqual(await ask({ lora: [{ id: 1 }] }));

    expect(await post('/lora-adapters?model=random', [{ id: 1, scale: 1 }])).toEqual({ success: true });
    expect(await ask()).toEqual(await ask({ lora: [{ id: 1 }] }));
    server.model.unloadAdapter('two');
    expect(await ask()).toEqual(plain);
    for (const [body, path, status] of [
      [[{ id: 9, scale: 1 }], '', 400],
      [[{ id: 0, scale: 101 }], '', 400],
      [{ id: 0 }, '', 400],
      [[], '?model=none', 404],
    ] as const) {
      await post(`/lora-adapters${path}`, body, status);
    }
    expect(await post('/lora-adapters', [])).toEqual({ success: true });
    expect(await list()).toEqual([{ id: 0, path: 'one', scale: 0 }]);
  });

  test('POST /slots says how prompts stay cached', async () => {
    for (const action of ['save', 'restore', 'erase']) {
      const { error } = await post(`/slots/0?action=${action}`, { filename: '../../etc/passwd' }, 501);
      expect(error).toMatchObject({ code: 'unsupported', message: expect.stringContaining('--kv-spill') });
    }
  });
});
