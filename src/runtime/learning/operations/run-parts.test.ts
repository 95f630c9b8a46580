// The parts a run trains: the model, re-ranking and routing.
import { beforeEach, describe, expect, test } from 'vitest';
import { sumsAndLetters } from '../../../learning/router/test-examples.contract.ts';
import { ROUTER_LINE } from '../../../learning/router-training/router-line.ts';
import { configOf } from '../../routing/routing.contract.ts';
import { createRouterLoop } from '../../routing/router-loop.ts';
import { createRouting } from '../../routing/routing.ts';
import { createTestLearning, type TestLearning } from './harness.contract.ts';
import type { LearningRun } from './runs.ts';

let desk: TestLearning;
beforeEach(async () => {
  desk = await createTestLearning();
});

/** A server with two routes: the small model and a large one that is not available. */
function openRoutes(work: Parameters<typeof createRouterLoop>[2] = desk.work) {
  const { memory, learning } = desk;
  const routing = createRouting({ config: configOf(), memory, now: () => 0, seed: 1, report() {} });
  learning.join(createRouterLoop(memory, routing, work));
  const question = { turns: ['what is 2 and 3'], embedded: null, similarities: [], isLocalOnly: false, load: 0 };
  return async () => (await routing.decide('acme', question)).candidate.id;
}

/** Good news of the large model, from so many requests. */
async function praiseLarge(count: number): Promise<void> {
  for (const { text: query } of sumsAndLetters(count, 1)) {
    const id = await desk.add({ model: 'large', query, prompt: null });
    await desk.learning.trajectories.rate('acme', { requestId: id, score: 1 });
  }
}
/** Corrections of the small model's answers: the model learns from them, and the router learns that they were wrong. */
async function correctSmall(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const requestId = await desk.add({ answer: 'no' });
    await desk.learning.trajectories.rate('acme', { requestId, correction: 'a blue zog' });
  }
}
const runAll = (input: object = {}) => desk.run<LearningRun>('learn.run', { waitMs: 50_000, ...input });

describe('[LO17] a run', () => {
  test('trains all there is, and tells of each part what came of it', async () => {
    const who = openRoutes();
    await correctSmall(40);
    await praiseLarge(40);
    expect(await who()).toBe('small');
    const { state, parts, report } = await runAll();
    expect(state).toBe('done');
    expect(parts).toMatchObject([
      { part: 'model', state: 'trained', version: 1, reason: expect.stringContaining('held-out loss falls') as string },
      { part: 'reranking', state: 'kept', version: null, reason: 'it is known of 0 requests what they used, 100 are needed' }, // prettier-ignore
      { part: 'routing', state: 'trained', version: 1, reason: expect.stringContaining('large') as string },
    ]);
    expect(report).toMatchObject({ version: 1, isAccepted: true });
    expect(await who()).toBe('large');
    // Of the same once more: nothing is new to the model, and the gate has no reason to change who answers.
    const again = await runAll();
    expect(again.parts.map(({ part, state: end }) => [part, end])).toEqual([
      ['model', 'kept'],
      ['reranking', 'kept'],
      ['routing', 'refused'],
    ]);
    expect(again.parts[2]).toMatchObject({ version: 2, reason: expect.any(String) as string });
    expect(await desk.run('learn.history', { of: 'routing' })).toMatchObject({
      serves: 1,
      versions: [{ version: 2, isAccepted: false, reason: again.parts[2]!.reason }, { version: 1 }],
    });
    expect(await who()).toBe('large');
  });

  test('of loop C has patterns, too, and each part once', async () => {
    openRoutes();
    await praiseLarge(24);
    const { parts } = await runAll({ loop: 'deep' });
    expect(parts.map(({ part }) => part)).toEqual(['model', 'patterns', 'reranking', 'routing']);
    expect(parts[0]).toMatchObject({
      state: 'kept',
      reason: expect.stringContaining('examples to train on') as string,
    });
    expect(parts[3]).toMatchObject({ state: 'trained', version: 1 });
  });

  test('is of one part where that is named, and needs no model for it', async () => {
    openRoutes();
    await praiseLarge(24);
    const { models } = desk.learning;
    Object.assign(desk.learning, { models: () => [...models(), 'other'] }); // ambiguous
    await expect(runAll()).rejects.toMatchObject({ code: 'invalid_option' });
    const run = await runAll({ of: 'routing' });
    expect(run).toMatchObject({ model: ROUTER_LINE, of: 'routing', state: 'done', report: null });
    expect(run.parts).toMatchObject([{ part: 'routing', state: 'trained', version: 1 }]);
    expect((await runAll({ of: 'reranking' })).parts).toMatchObject([{ part: 'reranking', state: 'kept' }]);
    await expect(runAll({ of: 'routing', model: 'small' })).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(runAll({ of: 'patterns' })).rejects.toMatchObject({ code: 'invalid_option' });
  });

  test('says where there are no routes, and refuses to train them alone', async () => {
    const { parts } = await runAll();
    expect(parts[2]).toEqual({
      part: 'routing',
      state: 'absent',
      version: null,
      reason: 'no routes are configured; start with ruvllm serve --route-config FILE',
    });
    await expect(runAll({ of: 'routing' })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('--route-config') as string,
    });
  });

  test('goes on with the other parts where one fails, and has failed', async () => {
    openRoutes();
    await praiseLarge(24);
    const run = await runAll({ model: 'large' }); // which is not loaded
    expect(run).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('not loaded') as string,
      report: null,
    });
    expect(run.parts.map(({ part, state }) => [part, state])).toEqual([
      ['model', 'failed'],
      ['reranking', 'kept'],
      ['routing', 'trained'],
    ]);
  });

  test('that is cancelled while a router is trained makes no router, and what was made before stays', async () => {
    let isStopped = (): void => {};
    let isTraining = (): void => {};
    const began = new Promise<void>((resolve) => (isTraining = resolve));
    const work = {
      trainRouter: () =>
        new Promise<never>((_, reject) => ((isStopped = () => reject(new Error('stopped'))), isTraining())),
      cancel: async () => isStopped(),
    };
    const who = openRoutes(work);
    await correctSmall(40);
    await praiseLarge(24);
    expect(await runAll({ waitMs: 0 })).toMatchObject({ state: 'running', parts: [] });
    await began;
    expect(await desk.run('learn.status')).toMatchObject({
      runs: [{ state: 'running', parts: [{ part: 'model', state: 'trained' }, { part: 'reranking' }] }],
    });
    // Joined before it is stopped: the same run.
    const running = runAll();
    await desk.run('learn.cancel');
    const ended = await running;
    expect(ended.state).toBe('cancelled');
    expect(ended.parts.map(({ part, state }) => [part, state])).toEqual([
      ['model', 'trained'],
      ['reranking', 'kept'],
      ['routing', 'cancelled'],
    ]);
    expect(await desk.run('learn.history', { of: 'routing' })).toMatchObject({ versions: [] });
    expect(await who()).toBe('small');
  });
});
