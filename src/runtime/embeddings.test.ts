import { expect, test } from 'vitest';
import { toyEmbedding } from '../../test/support/toy-model.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import type { EmbedInput } from './embeddings.ts';

const unit = (vector: Float32Array): Float32Array => {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
};
const expectNear = (actual: Float32Array | undefined, expected: Float32Array): void => {
  expect(actual).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(actual![i]).toBeCloseTo(value, 6));
};

test('texts and token ids become vectors of length 1, in their order', async () => {
  const { model, tokenizer } = await createToyRuntime();
  const texts = ['hello', 'a', 'hello world'];
  const lists = texts.map((text) => tokenizer.encode(text, { addSpecial: true }));
  const { embeddings, usage } = await model.embed(texts);
  embeddings.forEach((vector, i) => expectNear(vector, unit(toyEmbedding(lists[i]!, 'mean'))));
  const promptTokens = lists.reduce((sum, { length }) => sum + length, 0);
  expect(usage).toEqual({ promptTokens, totalTokens: promptTokens });
  expect((await model.embed(lists)).embeddings).toEqual(embeddings);
  expect((await model.embed(texts[2]!)).embeddings).toEqual([embeddings[2]]);
});

test('pooling, length and number of values are the caller\u2019s choice', async () => {
  const { model } = await createToyRuntime();
  const ids = [5, 9, 2, 40];
  for (const pooling of ['mean', 'last', 'cls'] as const) {
    const plain = toyEmbedding(ids, pooling);
    expect((await model.embed([ids], { pooling, normalize: false })).embeddings).toEqual([plain]);
    const [short] = (await model.embed([ids], { pooling, dimensions: 2 })).embeddings;
    expectNear(short, unit(plain.slice(0, 2)));
    const [longer] = (await model.embed([ids], { pooling, dimensions: 2, normalize: false })).embeddings;
    expect(longer).toEqual(plain.slice(0, 2));
  }
});

test('more texts than the engine would queue are embedded all the same', async () => {
  const { model } = await createToyRuntime({ spec: { maxWaiting: 70 } });
  const lists = Array.from({ length: 300 }, (_, i) => [i % 61, (i * 3) % 61]);
  const { embeddings } = await model.embed(lists, { normalize: false });
  expect(embeddings).toEqual(lists.map((list) => toyEmbedding(list, 'mean')));
});

test.each<[string, unknown, object, string, RegExp]>([
  ['nothing', [], {}, 'empty_prompt', /no text/],
  ['an empty text', ['a', ''], {}, 'empty_prompt', /input\[1\] is empty/],
  ['an empty list of ids', [[]], {}, 'empty_prompt', /input\[0\] is empty/],
  ['a number', 5, {}, 'invalid_option', /embed requires/],
  ['a list of numbers', [5], {}, 'invalid_option', /input\[0\] must be/],
  ['an unknown token', [[5, 99]], {}, 'invalid_token', /token 99 at position 1/],
  ['a long text', ['a', 'b'.repeat(600)], {}, 'context_overflow', /input\[1\] has 60\d tokens; the context holds 512/],
  ['too many dimensions', ['a'], { dimensions: 4 }, 'invalid_option', /"dimensions" is 4; .* 3 values/],
  ['no dimensions', ['a'], { dimensions: 0 }, 'invalid_option', /dimensions/],
  ['an unknown pooling', ['a'], { pooling: 'max' }, 'invalid_option', /pooling/],
  ['an unknown option', ['a'], { truncate: true }, 'invalid_option', /truncate/],
])('refuses %s', async (_what, input, options, code, message) => {
  const { model } = await createToyRuntime();
  await expect(model.embed(input as EmbedInput, options)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
});

test('one that fails takes the others with it, and the engine stays usable', async () => {
  const { model, transport } = await createToyRuntime();
  await expect(model.embed([[1], [2, 99], [3]])).rejects.toMatchObject({ code: 'invalid_token' });
  expect(transport.sent.filter(({ type }) => type === 'abort').length).toBeGreaterThan(0);
  await expect(model.embed([[1]])).resolves.toMatchObject({ usage: { promptTokens: 1 } });
  expect(transport.isBusy).toBe(false);
});

test('aborting ends all that has begun', async () => {
  const { model, transport } = await createToyRuntime();
  const early = AbortSignal.abort();
  await expect(model.embed('a', { signal: early })).rejects.toMatchObject({ code: 'aborted' });
  const control = new AbortController();
  const embedding = model.embed(
    Array.from({ length: 100 }, () => [1, 2, 3]),
    { signal: control.signal },
  );
  while (transport.sent.at(-1)?.type !== 'embed') await Promise.resolve();
  control.abort();
  await expect(embedding).rejects.toMatchObject({ code: 'aborted' });
  expect(transport.sent.filter(({ type }) => type === 'embed')).toHaveLength(64);
  expect(transport.sent.filter(({ type }) => type === 'abort')).toHaveLength(64);
  expect(await model.stats()).toMatchObject({ numRunning: 0, numWaiting: 0 });
});

test('after dispose it is not_loaded, and what is in progress fails so', async () => {
  const { model } = await createToyRuntime();
  const embedding = model.embed([[1, 2, 3]]);
  const disposing = model.dispose();
  await expect(embedding).rejects.toMatchObject({ code: 'not_loaded' });
  await disposing;
  await expect(model.embed('a')).rejects.toMatchObject({ code: 'not_loaded' });
});

test('an encoder embeds and refuses to generate', async () => {
  const { model } = await createToyRuntime({ isCausal: false, limits: { maxBatchTokens: 512 } });
  const ids = [5, 9, 2, 40];
  expect(model.modelInfo()).toMatchObject({ canGenerate: false, embeddingDim: 3, pooling: 'mean' });
  expect((await model.embed([ids], { normalize: false })).embeddings).toEqual([toyEmbedding(ids, 'mean', false)]);
  await expect(model.generate('a')).rejects.toMatchObject({ code: 'unsupported' });
});
