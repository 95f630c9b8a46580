import { describe, expect, test } from 'vitest';
import { RERANKER_LINE } from '../../learning/graph-attention/reranker-store.ts';
import { createLearningControl, learningOperation } from './operations/index.ts';
import { createRerankWorld, NUM_ASKED, TENANT } from './reranking.contract.ts';

describe('the order of what is recalled, learned from what answers used', () => {
  test('[RK1] records linked to the nearest rank first after the deep loop, also for held-out questions; a rollback undoes it', async () => {
    const world = await createRerankWorld(false);
    const { memory, recallHeldOut } = world;
    const learning = world.open();
    const plain = await recallHeldOut();
    await world.ask(learning);
    const marks = await learning.trajectories.find(TENANT, { limit: 1000 });
    expect(marks).toHaveLength(NUM_ASKED);
    expect(marks.every(({ retrieved }) => retrieved.filter(({ isUsed }) => isUsed === true).length === 1)).toBe(true);
    expect(await recallHeldOut()).toEqual(plain); // asking alone changes nothing

    const { reranker } = await learning.sona.deepOptimize(TENANT, 'small');
    expect(reranker.reason).toContain('NDCG@10 rises');
    expect(reranker).toMatchObject({ numLists: NUM_ASKED, version: { version: 1, isAccepted: true } });
    const learned = await recallHeldOut();
    expect(learned.orders).not.toEqual(plain.orders);
    expect(learned.ndcg).toBeGreaterThan(plain.ndcg + 0.1);

    await learning.sona.reranking.rollback(TENANT, 0);
    expect(await recallHeldOut()).toEqual(plain);
    await learning.sona.reranking.rollback(TENANT, 1);
    expect(await recallHeldOut()).toEqual(learned);

    // Closed, nothing re-ranks; opened again, what was learned does.
    await learning.close();
    expect(await recallHeldOut()).toEqual(plain);
    const again = world.open();
    expect(await recallHeldOut()).toEqual(learned);

    // Who forgets a conversation forgets what was learned from it; the rest teaches anew.
    const [version] = await again.sona.versions.history(TENANT, RERANKER_LINE);
    const one = await again.trajectories.get(TENANT, version!.learnedFrom[0]!);
    const forgotten = await again.sona.forget(TENANT, [{ field: 'sessionId', is: '=', value: one!.sessionId! }]);
    expect(forgotten.relearned).toMatchObject([
      { model: RERANKER_LINE, reason: expect.stringContaining('learned again') },
    ]);
    const [anew] = await again.sona.versions.history(TENANT, RERANKER_LINE);
    expect(anew).toMatchObject({ version: 2, loop: 'operator', isAccepted: true });
    expect(anew!.learnedFrom).not.toContain(one!.requestId);
    await expect(again.sona.reranking.rollback(TENANT, 1)).rejects.toMatchObject({ code: 'not_found' });

    expect(await again.sona.reranking.rerank.of(TENANT, 'planted-1')).not.toBeNull();
    await memory.erase({ tenant: TENANT });
    expect(await again.sona.reranking.rerank.of(TENANT, 'planted-1')).toBeNull();
    expect(world.reports).toEqual([]);
  });

  test('[RK3] a run tells of it; status, history and diff show it, and rolling back by name changes the order', async () => {
    const world = await createRerankWorld(false);
    const learning = world.open();
    const control = createLearningControl({ learning, memory: world.memory });
    const run = async <T>(name: string, input: object) =>
      (await learningOperation(name).run(control, TENANT, input)) as T;
    const plain = await world.recallHeldOut();
    await world.ask(learning);
    // A run that takes longer than a call may wait is joined by the next call.
    const runDeep = async () => {
      for (;;) {
        const report = await run<{ state: string }>('learn.run', { loop: 'deep', waitMs: 50_000 });
        if (report.state !== 'running') return report;
      }
    };
    expect(await runDeep()).toMatchObject({
      state: 'done',
      report: { version: null, reranking: { version: 1, isAccepted: true } },
    });
    const learned = await world.recallHeldOut();
    // Once more on the same: it is not surely better than what serves.
    expect(await runDeep()).toMatchObject({ report: { reranking: { version: 2, isAccepted: false } } });
    expect(await world.recallHeldOut()).toEqual(learned);
    expect(await run('learn.status', {})).toMatchObject({
      others: [{ line: RERANKER_LINE, serves: { version: 1 }, newestVersion: 2 }],
    });
    expect(await run('learn.history', { of: 'reranking' })).toMatchObject({
      model: RERANKER_LINE,
      serves: 1,
      versions: [
        { version: 2, isAccepted: false, reason: expect.stringContaining('against what serves') },
        { version: 1, isAccepted: true, metrics: { num_queries: NUM_ASKED / 5, num_groups: NUM_ASKED / 5 } },
      ],
    });
    expect(await run('learn.diff', { of: 'reranking', from: 1, to: 1 })).toMatchObject({
      metrics: { ndcg_trained: {} },
      weights: { normOfChange: 0 },
    });
    await expect(run('learn.history', { of: 'reranking', model: 'small' })).rejects.toMatchObject({ code: 'invalid_option' }); // prettier-ignore
    await expect(run('learn.rollback', { of: 'reranking', toVersion: 2 })).rejects.toMatchObject({ code: 'conflict' });
    expect(await run('learn.rollback', { of: 'reranking', toVersion: 0 })).toEqual({ model: RERANKER_LINE, serves: null }); // prettier-ignore
    expect(await world.recallHeldOut()).toEqual(plain);
    await expect(run('learn.rollback', { of: 'routing', toVersion: 1 })).rejects.toMatchObject({ code: 'not_found' });
    await learning.close();
  });

  test('[RK2] use at random teaches nothing: the order stays as it was, and the version says why', async () => {
    const world = await createRerankWorld(true);
    const learning = world.open();
    const plain = await world.recallHeldOut();
    await world.ask(learning);
    const { reranker } = await learning.sona.deepOptimize(TENANT, 'small');
    expect(reranker).toMatchObject({ numLists: NUM_ASKED, version: { version: 1, isAccepted: false, blobs: {} } });
    expect(reranker.reason).toContain('not sure');
    expect(await world.recallHeldOut()).toEqual(plain);
    await learning.close();
  });
});
