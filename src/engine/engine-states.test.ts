import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import { createToyModel, createToySampler, toyContinuation } from '../../test/support/toy-model.ts';
import { createEngine } from './engine.ts';

const prompt = Array.from({ length: 20 }, (_, i) => (i * 7) % 60);

test('[E1] a request that is aborted in a step leaves no state of tokens that it did not keep', async () => {
  let numSteps = 0;
  const model = createToyModel({
    pageTokens: 4,
    limits: { maxBatchTokens: 6, maxSequences: 2 },
    numStates: 8,
    // The second step continues inside a page, so that the pages of the first end in one without a checkpoint.
    beforeForward: () => void (++numSteps === 2 && engine.abort(1)),
  });
  const engine = createEngine(model, { maxContext: 64, now: () => 0 });
  engine.add(engineRequest({ id: 1, promptIds: prompt, maxTokens: 4, sampler: createToySampler(5) }));
  await engine.step();
  await engine.step();
  engine.checkIntegrity();
  engine.add(engineRequest({ id: 2, promptIds: prompt, maxTokens: 4, sampler: createToySampler(5) }));
  const tokens: number[] = [];
  while (engine.hasWork) {
    for (const event of await engine.step()) {
      expect(event.type).not.toBe('failed');
      if (event.type === 'token') tokens.push(event.token.tokenId);
      if (event.type === 'finished') expect(event.cachedTokens).toBe(4);
    }
  }
  expect(tokens).toEqual(toyContinuation(prompt, { seed: 5, maxTokens: 4 }));
  engine.checkIntegrity();
  await engine.dispose();
});

test('[E1] a conversation continues after the end of its last answer', async () => {
  const model = createToyModel({ pageTokens: 4, numStates: 4, limits: { maxSequences: 2 } });
  const engine = createEngine(model, { maxContext: 64, now: () => 0 });
  const ask = async (id: number, promptIds: readonly number[]) => {
    engine.add(engineRequest({ id, promptIds, maxTokens: 3, sampler: createToySampler(id) }));
    const answer = { tokens: [] as number[], cachedTokens: -1 };
    while (engine.hasWork) {
      for (const event of await engine.step()) {
        if (event.type === 'token') answer.tokens.push(event.token.tokenId);
        if (event.type === 'finished') answer.cachedTokens = event.cachedTokens;
      }
    }
    expect(answer.tokens).toEqual(toyContinuation(promptIds, { seed: id, maxTokens: 3 }));
    return answer;
  };
  const first = await ask(1, prompt.slice(0, 9));
  // The last token of an answer is never computed: the next turn starts with it.
  const next = [...prompt.slice(0, 9), ...first.tokens, 1, 2, 3];
  expect((await ask(2, next)).cachedTokens).toBe(11);
  await engine.dispose();
});
