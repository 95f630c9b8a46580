import { expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import { createSampler } from '../sampling/sampler.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';

const { model } = await createToyRuntime({
  createSampler: (params) => createSampler(params, createRandom(params.seed ?? 1)),
});
/** At this bias, the toy's end token is the best of nearly every row. */
const END_BIAS = { 1: 100 };

test.each([0, 1])('minTokens: no end token before that many tokens, at temperature %i', async (temperature) => {
  const options = { temperature, seed: 5, maxTokens: 60, logitBias: END_BIAS };
  const short = await model.generate('hello', options);
  expect([short.finishReason, short.tokenIds.length]).toEqual(['stop', 0]);
  for (const minTokens of [1, 7, 30]) {
    const result = await model.generate('hello', { ...options, minTokens });
    expect([result.finishReason, result.tokenIds.length]).toEqual(['stop', minTokens]);
  }
  const long = await model.generate('hello', { ...options, minTokens: 200 });
  expect([long.finishReason, long.tokenIds.length]).toEqual(['length', 60]);
});

test('stopTokenIds end the text without being part of it, after minTokens', async () => {
  const options = { temperature: 0, maxTokens: 40, ignoreEos: true };
  const whole = (await model.generate('hello', options)).tokenIds;
  const stopId = whole[5]!;
  const numBefore = whole.indexOf(stopId);
  const stopped = await model.generate('hello', { ...options, stopTokenIds: [stopId] });
  expect(stopped).toMatchObject({ finishReason: 'stop', tokenIds: whole.slice(0, numBefore) });
  const later = await model.generate('hello', { ...options, stopTokenIds: [stopId], minTokens: 20 });
  expect(later.tokenIds.slice(0, 20)).not.toContain(stopId);
  expect(later.tokenIds.length).toBeGreaterThanOrEqual(20);
});

test('an unknown stop token is rejected', async () => {
  await expect(model.generate('a', { stopTokenIds: [99_999] })).rejects.toMatchObject({
    code: 'invalid_token',
    message: expect.stringContaining('option "stopTokenIds" names token 99999'),
  });
});
