import { expect, test } from 'vitest';
import { toyContinuation } from '../../test/support/toy-model.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';

const PROMPT = 'the same beginning of many prompts, longer than two pages of it';
const ASK = { maxTokens: 12, seed: 5, ignoreEos: true };

test('a prompt asked again is known but for its last token, and gives the same answer', async () => {
  const { model } = await createToyRuntime();
  const first = await model.generate(PROMPT, ASK);
  const again = await model.generate(PROMPT, ASK);
  const usage = { promptTokens: 64, completionTokens: 12, totalTokens: 76, reasoningTokens: 0 };
  expect(first.usage).toMatchObject({ ...usage, cachedTokens: 0 });
  expect(again.usage).toMatchObject({ ...usage, cachedTokens: 63 });
  expect(again.tokenIds).toEqual(first.tokenIds);
  expect(again.text).toBe(first.text);
});

test('the speed of a prompt is that of the tokens which were computed', async () => {
  const { model } = await createToyRuntime();
  await model.generate(PROMPT, ASK);
  const { timings } = await model.generate(PROMPT, ASK);
  expect(timings.promptTokensPerSecond).toBe(timings.promptMs > 0 ? 1000 / timings.promptMs : null);
});

test('with cachePrefix false nothing is looked for and nothing is left', async () => {
  const { model } = await createToyRuntime();
  await model.generate(PROMPT, { ...ASK, cachePrefix: false });
  expect((await model.generate(PROMPT, ASK)).usage.cachedTokens).toBe(0); // nobody left it
  expect((await model.generate(PROMPT, { ...ASK, cachePrefix: false })).usage.cachedTokens).toBe(0);
  expect((await model.generate(PROMPT, ASK)).usage.cachedTokens).toBe(63);
});

test('a model without a prefix cache knows nothing', async () => {
  const { model } = await createToyRuntime({ spec: { prefixCache: false } });
  await model.generate(PROMPT, ASK);
  expect((await model.generate(PROMPT, ASK)).usage.cachedTokens).toBe(0);
});

test('tenants share nothing; each finds its own', async () => {
  const { model } = await createToyRuntime();
  const cachedTokens = async (tenant?: string): Promise<number> =>
    (await model.generate(PROMPT, { ...ASK, ...(tenant === undefined ? {} : { tenant }) })).usage.cachedTokens;
  expect(await cachedTokens('a')).toBe(0);
  expect(await cachedTokens('b')).toBe(0);
  expect(await cachedTokens()).toBe(0);
  expect([await cachedTokens('a'), await cachedTokens('b'), await cachedTokens('local')]).toEqual([63, 63, 63]);
});

test('the request says whose it is, how urgent, how long, and how long its pages stay', async () => {
  const { model, transport } = await createToyRuntime();
  await model.generate('a', { maxTokens: 1, tenant: 't', priority: 3, timeoutMs: 60_000, cachePrefix: false });
  await model.generate('a', { maxTokens: 1, session: 's' });
  expect(transport.sent.filter(({ type }) => type === 'generate')).toMatchObject([
    { request: { tenant: 't', priority: 3, timeoutMs: 60_000, cachePrefix: false, retention: 'ordinary' } },
    { request: { tenant: 'local', priority: 0, timeoutMs: null, cachePrefix: true, retention: 'session' } },
  ]);
});

test('a call whose time is over fails with the numbers and holds nothing', async () => {
  const { model } = await createToyRuntime({
    beforeForward: () => new Promise((resolve) => setTimeout(resolve, 2)),
  });
  await expect(model.generate('abc', { maxTokens: 400, ignoreEos: true, timeoutMs: 10 })).rejects.toMatchObject({
    code: 'deadline_exceeded',
    data: { timeoutMs: 10 },
  });
  expect(await model.stats()).toMatchObject({ numRunning: 0, numFreePages: 64, numExpired: 1 });
});

test('a stream that nobody reads holds no pages once the engine is done', async () => {
  const { model } = await createToyRuntime();
  const stream = model.generateStream(PROMPT, { ...ASK, maxTokens: 100 });
  await stream.next();
  expect((await model.stats()).numFreePages).toBeLessThan(64);
  while ((await model.stats()).numRunning > 0);
  const stats = await model.stats();
  expect(stats).toMatchObject({ numFreePages: 64 });
  expect(stats.cache.numIdlePages).toBe(stats.cache.numCachedPages); // known, but anyone may have the room
  const expected = toyContinuation(model.encodePrompt(PROMPT), { seed: 5, maxTokens: 100 });
  const rest: number[] = [];
  for await (const chunk of stream) rest.push(...chunk.tokenIds);
  expect(rest).toEqual(expected.slice(1));
});
