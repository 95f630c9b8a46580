import { beforeEach, expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { createRequestMemory, type RequestMemory } from '../memory/request-memory.ts';
import { configOf, serveConstant } from '../routing/routing.contract.ts';
import { createRouting } from '../routing/routing.ts';
import { createTestLearning, type TestLearning } from './operations/harness.contract.ts';

const DAY_MS = 86_400_000;
let desk: TestLearning;
let requests: RequestMemory;

beforeEach(async () => {
  desk = await createTestLearning();
  const { memory, services, learning } = desk;
  requests = createRequestMemory(memory, { now: () => 0, wallClock: services.now, report() {}, learning });
  // Two kinds of questions, answered well by both models, each better by another: two patterns with a recommendation.
  for (const [query, best] of [
    ['lost card', 'large'],
    ['rain tomorrow', 'small'],
  ] as const) {
    const { vector: embedding, space } = (await memory.embed(query))!;
    for (const [model, score] of [
      ['large', best === 'large' ? 1 : 0.6],
      ['small', best === 'small' ? 1 : 0.6],
    ] as const) {
      for (let i = 0; i < 20; i++) {
        const requestId = await desk.add({ query, embedding, space, model, prompt: null });
        await learning.trajectories.rate('acme', { requestId, score });
      }
    }
  }
  await learning.sona.bank.distil('acme');
  expect(await patterns()).toEqual(['lost card', 'rain tomorrow']);
});

async function patterns(): Promise<string[]> {
  const { records } = await desk.memory.store.find('acme', { kinds: ['pattern'], order: 'oldest', limit: 10 });
  const texts = records.map(({ body }) => /Asked: (.*)/.exec((body as { text: string }).text)![1]!);
  return texts.sort();
}

/** The deep loop, as an operator runs it. */
const tidy = () => desk.run('learn.run', { loop: 'deep', waitMs: 50_000 });

test('[RB5] a pattern that is recalled for requests outlives 30 days; one that no request used is pruned', async () => {
  const { model } = createSpokenModel(['Block it.'], { memory: requests });
  for (let i = 0; i < 2; i++) {
    desk.services.timeMs += 20 * DAY_MS;
    const { text } = await model.generate('my card is lost', { tenant: 'acme', memory: { kinds: ['pattern'], k: 1 } });
    expect(text).toBe('Block it.');
    await requests.settle();
  }
  await tidy();
  expect(await patterns()).toEqual(['lost card']);
});

test('[RB5] a pattern that has a say in who answers is in use', async () => {
  const { memory, services } = desk;
  const config = configOf();
  await serveConstant(memory, 'acme', config, { candidate: 1, confidence: 0.9 });
  const routing = createRouting({ config, memory, now: services.now, seed: 1, report() {} });
  const prompt = 'my card is lost';
  for (let i = 0; i < 2; i++) {
    services.timeMs += 20 * DAY_MS;
    const call = { tenant: 'acme', requestId: services.newId(), model: 'auto', session: null, user: null, prompt };
    const open = await requests.begin({ ...call, wish: null, isRouted: true, near: routing.nearQuery('acme') });
    const { embedded, near, similarities } = open;
    const choice = await routing.decide('acme', { turns: [prompt], embedded, near, similarities, isLocalOnly: false, load: 0 }); // prettier-ignore
    expect(choice.patternIds).toHaveLength(1);
    const outcome = { text: 'a', numPromptTokens: 1, numOutputTokens: 1, ttftMs: 1, generationMs: 1, queueMs: null, promptMs: null, error: null }; // prettier-ignore
    open.finish({ ...outcome, served: { model: 'large', choice } });
    await requests.settle();
  }
  await tidy();
  expect(await patterns()).toEqual(['lost card']);
});
