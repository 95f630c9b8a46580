import { beforeEach, describe, expect, test } from 'vitest';
import { createMemorySource, openGguf } from '../../../gguf/index.ts';
import { trajectoryFixture } from '../../../learning/trajectories/harness.contract.ts';
import { createTestLearning, type TestLearning } from './harness.contract.ts';
import { learningPath } from './operation-names.ts';
import { LEARNING_OPERATIONS } from './table.ts';

let desk: TestLearning;
beforeEach(async () => {
  desk = await createTestLearning();
});

/** A promise that the test ends. */
function later(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((end) => (resolve = end));
  return { promise, resolve: () => resolve() };
}

interface Version {
  readonly version: number;
  readonly numLearnedFrom: number;
}

describe('feedback', () => {
  test('[LO1] a thumbs-up is in the trajectory, and what serves changes, for this tenant only', async () => {
    const { run, add, learning, served } = desk;
    const id = await add();
    const report = await run('feedback', { requestId: `chatcmpl-${id}`, thumbs: 'up', source: 'ui', waitMs: 60_000 });
    expect(report).toMatchObject({ requestId: id, verdict: 'success', quality: 1, learned: { state: 'applied' } });
    const { learned } = report as { learned: { lossBefore: number; lossAfter: number } };
    expect(learned.lossAfter).toBeLessThan(learned.lossBefore);
    expect(await learning.trajectories.get('acme', id)).toMatchObject({
      quality: 1,
      verdict: 'success',
      feedback: [{ source: 'ui', score: 1, hasCorrection: false }],
    });
    expect(served.get('acme')!.instant).not.toBeNull();
    expect([...served.keys()]).toEqual(['acme']);
  });

  test('[LO1] a thumbs-down is a 0, a correction says what should have been', async () => {
    const { run, add, learning } = desk;
    const [bad, wrong] = [await add(), await add()];
    expect(await run('feedback', { requestId: bad, thumbs: 'down' })).toMatchObject({ verdict: 'failure', quality: 0 });
    await run('feedback', { requestId: wrong, correction: 'a red zog' });
    expect(await learning.trajectories.get('acme', wrong)).toMatchObject({ correction: 'a red zog', quality: 0 });
  });

  test('[LO1] before the step is done it is pending, and the step is still taken', async () => {
    const { run, add, learning, served } = desk;
    expect(await run('feedback', { requestId: await add(), score: 1, waitMs: 0 })).toMatchObject({
      learned: { state: 'pending', reason: null },
    });
    await learning.settle();
    expect(served.get('acme')!.instant).not.toBeNull();
  });

  test('[LO2] an unknown request, or one of another tenant, is not_found', async () => {
    const { run, add } = desk;
    const id = await add();
    for (const [requestId, tenant] of [
      [id, 'bob'],
      [crypto.randomUUID(), 'acme'],
    ] as const) {
      await expect(run('feedback', { requestId, thumbs: 'up' }, tenant)).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  test('[LO2] nothing said, scores out of range and unknown fields are refused', async () => {
    const { run, add, learning } = desk;
    const requestId = await add();
    for (const input of [
      {},
      { score: 2 },
      { score: -0.1 },
      { thumbs: 'sideways' },
      { score: 1, stars: 5 },
      { correction: '' },
    ]) {
      await expect(run('feedback', { requestId, ...input })).rejects.toMatchObject({ code: 'invalid_option' });
    }
    expect(await learning.trajectories.get('acme', requestId)).toMatchObject({ verdict: 'unknown', feedback: [] });
  });

  test('[LO3] a flood is told when to come again, and the time lets it in', async () => {
    const { run, add, services } = desk;
    const requestId = await add();
    for (let i = 0; i < 60; i++) await run('feedback', { requestId, comment: 'again', waitMs: 0 });
    await expect(run('feedback', { requestId, comment: 'again' })).rejects.toMatchObject({
      code: 'overloaded',
      data: { retryAfterMs: 1000 },
    });
    await expect(run('feedback', { requestId, comment: 'mine' }, 'bob')).rejects.toMatchObject({ code: 'not_found' });
    services.timeMs += 1000;
    expect(await run('feedback', { requestId, comment: 'later' })).toMatchObject({ requestId });
  });
});

describe('loops and versions', () => {
  test('[LO4] a run makes a version; status, history and diff tell of it, and the file has its weights', async () => {
    const { run, teach, learning, served } = desk;
    const first = await teach(40);
    expect(await run('learn.status')).toMatchObject({
      numRequests: { success: 40, failure: 0, partial: 0, unknown: 0 },
      models: [{ model: 'small', isLoaded: true, serves: null, isBackgroundDue: true, isDeepDue: false }],
      runs: [],
    });
    expect(await run('learn.status', {}, 'bob')).toMatchObject({ numRequests: { success: 0 }, models: [{ serves: null, isBackgroundDue: false }] }); // prettier-ignore
    expect(await run('learn.run', { waitMs: 50_000 })).toMatchObject({
      state: 'done',
      report: { version: 1, isAccepted: true },
    });
    await teach(20);
    expect(await run('learn.run', { loop: 'deep', waitMs: 50_000 })).toMatchObject({ state: 'done', report: { version: 2 } }); // prettier-ignore
    const history = await run<{ serves: number; versions: Version[] }>('learn.history');
    expect(history.versions.map(({ version }) => version)).toEqual([2, 1]);
    expect(await run('learn.history', { model: 'small' }, 'bob')).toMatchObject({ serves: 0, versions: [] });
    const known = history.versions.at(-1)!.numLearnedFrom;
    expect(known).toBeGreaterThan(20);
    expect(known).toBeLessThan(first.length);
    const same = await run<{ weights: object }>('learn.diff', { from: 1, to: 1 });
    expect(same).toMatchObject({ requests: { numAdded: 0, numRemoved: 0 }, weights: { normOfChange: 0 } });
    const { gguf, ...about } = await run<{ gguf: string; version: number; contentHash: string }>('learn.export');
    expect(about.version).toBe(history.serves);
    const file = openGguf(createMemorySource(new Uint8Array(Buffer.from(gguf, 'base64'))));
    expect(file.metadata.string('general.type')).toBe('adapter');
    expect(file.tensors.size).toBe(2 * served.get('acme')!.trained!.factors.length);
    expect(about.contentHash).toBe(served.get('acme')!.trained!.contentHash);
    expect(learning.sona.stats()).toMatchObject({ numBackground: 1, numDeep: 1 });
  });

  test('[LO5] rolling back and resetting change what serves, and nothing that was refused ever does', async () => {
    const { run, teach, served } = desk;
    await teach(40);
    await run('learn.run', { waitMs: 50_000 });
    expect(served.get('acme')!.trained).not.toBeNull();
    expect(await run('learn.rollback', { toVersion: 0 })).toEqual({ model: 'small', serves: null, numCorrections: 0 });
    expect(served.get('acme')!.trained).toBeNull();
    expect(await run('learn.rollback', { toVersion: 1 })).toMatchObject({ serves: { version: 1 } });
    expect(served.get('acme')!.trained).not.toBeNull();
    await expect(run('learn.rollback', { toVersion: 7 })).rejects.toMatchObject({ code: 'not_found' });
    expect(await run('learn.reset')).toEqual({ model: 'small', serves: null, numCorrections: 0 });
    expect(served.get('acme')!.trained).toBeNull();
    await expect(run('learn.export')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('[LO6] a run continues in the background, is visible to its own tenant only, and ends when cancelled', async () => {
    const { run, teach, work } = desk;
    await teach(40);
    const training = later();
    const { train } = work;
    Object.assign(work, { train: async (job: never) => (await training.promise, train(job)) });
    expect(await run('learn.run', { waitMs: 0 })).toMatchObject({ state: 'running', report: null });
    expect(await run('learn.run', { waitMs: 0 })).toMatchObject({ state: 'running' });
    await expect(run('learn.run', { loop: 'deep', waitMs: 0 })).rejects.toMatchObject({ code: 'conflict' });
    expect(await run('learn.status')).toMatchObject({
      runs: [{ model: 'small', loop: 'background', state: 'running' }],
    });
    expect(await run('learn.status', {}, 'bob')).toMatchObject({ runs: [] });
    await expect(run('learn.cancel', {}, 'bob')).rejects.toMatchObject({ code: 'not_found' });
    expect(await run('learn.cancel')).toMatchObject({ isCancelling: true });
    Object.assign(work, { train: async (job: object) => train({ ...job, timeLimitMs: 1 } as never) });
    training.resolve();
    expect(await run('learn.run', { waitMs: 50_000 })).toMatchObject({ state: 'cancelled', report: null });
    await expect(run('learn.cancel')).rejects.toMatchObject({ code: 'not_found' });
    expect(await run('learn.history')).toMatchObject({ versions: [] });
  });

  test('a version whose file is too large for an answer is refused with both sizes', async () => {
    const numRows = 2 ** 24;
    const factors = [{ target: 'output', layer: -1, numCols: 1, numRows, rank: 1, scale: 1, a: new Float32Array(1), b: new Float32Array(numRows) }] as const; // prettier-ignore
    const adapterOf = async () => ({ architecture: 'llama', factors, contentHash: '' });
    Object.assign(desk.learning.sona, { adapterOf });
    await expect(desk.run('learn.export', { version: 1 })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringMatching(/^the file has \d{8} bytes, the limit is 67108864$/) as string,
    });
  });

  test('[LO7] a request that is still on its way to the store is forgotten too', async () => {
    const { run, learning } = desk;
    const { promise, resolve } = later();
    const one = trajectoryFixture(1);
    learning.expect(
      'acme',
      one.requestId,
      promise.then(() => learning.observe('acme', one)),
    );
    const forgetting = run('learn.forget', { requestId: one.requestId });
    // Long enough for one that does not wait to be through.
    await Promise.race([forgetting, new Promise((end) => setTimeout(end, 200))]);
    resolve();
    expect(await forgetting).toMatchObject({ numTrajectories: 1 });
    await learning.settle();
    expect(await learning.trajectories.get('acme', one.requestId)).toBeNull();
  });

  test('[LO7] forgetting a user takes what was learned from them; exactly one thing is named', async () => {
    const { run, add, served, learning } = desk;
    const id = await add({ userId: 'u1', sessionId: 's1' });
    await add({ userId: 'u2' });
    await run('feedback', { requestId: id, thumbs: 'up', waitMs: 60_000 });
    expect(served.get('acme')!.instant).not.toBeNull();
    for (const input of [{}, { userId: 'u1', sessionId: 's1' }]) {
      await expect(run('learn.forget', input)).rejects.toMatchObject({ code: 'invalid_option' });
    }
    expect(await run('learn.forget', { userId: 'u1' }, 'bob')).toMatchObject({ numTrajectories: 0 });
    expect(await run('learn.forget', { userId: 'u1' })).toMatchObject({
      numTrajectories: 1,
      relearned: [{ model: 'small' }],
    });
    expect(await learning.trajectories.get('acme', id)).toBeNull();
    expect(served.get('acme')!.instant).toBeNull();
    expect(await run('learn.status')).toMatchObject({ numRequests: { unknown: 1 } });
  });
});

test('[LO8] patterns are found by their words', async () => {
  const { run, memory, learning } = desk;
  for (const n of [1, 2, 3, 4]) {
    const embedded = (await memory.embed('where is my lost card'))!;
    const id = await desk.add({
      query: `where is my lost card ${n}`,
      embedding: embedded.vector,
      space: embedded.space,
    });
    await learning.trajectories.rate('acme', { requestId: id, score: 1 });
  }
  await learning.sona.bank.distil('acme');
  expect(await run('learn.patterns', { text: 'lost card' })).toMatchObject({
    patterns: [{ verdict: 'success', support: 4 }],
  });
  expect(await run('learn.patterns', { text: 'lost card' }, 'bob')).toEqual({ patterns: [] });
});

test('[LO9] every operation is at a path of its own and refuses what it does not know', async () => {
  expect(new Set(LEARNING_OPERATIONS.map(learningPath)).size).toBe(LEARNING_OPERATIONS.length);
  for (const { name } of LEARNING_OPERATIONS) {
    await expect(desk.run(name, { nonsense: 1 }), name).rejects.toMatchObject({ code: 'invalid_option' });
  }
});

test('[LO10] feedback on an answer that is still being written down waits for it', async () => {
  const { run, learning, add } = desk;
  const id = '0199a0b4-7c00-7000-8000-000000000001';
  const written = later();
  learning.expect('acme', id, written.promise);
  const judged = run('feedback', { requestId: id, thumbs: 'up' });
  expect(await add()).toBe(id);
  written.resolve();
  expect(await judged).toMatchObject({ verdict: 'success' });
});

test('[LO11] curves: every version with its losses, and feedback by the day it was given', async () => {
  const { run, teach, services } = desk;
  await teach(40);
  await run('learn.run', { waitMs: 50_000 });
  interface Series {
    readonly adapters: { model: string; serves: number; points: Record<string, number>[] }[];
    readonly feedback: { startMs: number; numRequests: number; numUp: number; numDown: number; meanScore: number }[];
  }
  const series = await run<Series>('learn.series', { bucketMs: 86_400_000, toMs: services.timeMs + 1000 });
  expect(series).toMatchObject({ router: { serves: 0, points: [] }, isComplete: true });
  expect(series.adapters).toMatchObject([{ model: 'small', serves: 1, points: [{ version: 1, loop: 'background' }] }]);
  const [point] = series.adapters[0]!.points;
  expect(point!['gain']).toBeGreaterThan(0);
  expect(point!['lossBefore']! - point!['lossAfter']!).toBeCloseTo(point!['gain']!, 10);
  expect(point!['gainLow']).toBeLessThanOrEqual(point!['gain']!);
  expect(point!['gainHigh']).toBeGreaterThanOrEqual(point!['gain']!);
  expect(series.feedback.reduce((sum, { numUp }) => sum + numUp, 0)).toBe(40);
  expect(series.feedback.at(-1)).toMatchObject({ numDown: 0, meanScore: 1 });
  const [first] = await teach(1, 0);
  expect(first).toBeDefined();
  services.timeMs += 86_400_000;
  await teach(2, 0);
  const later = await run<Series>('learn.series', {});
  expect(later.feedback.map(({ numDown }) => numDown)).toEqual([1, 2]);
  expect(await run('learn.series', { maxRequests: 5 })).toMatchObject({ isComplete: false });
  expect(await run('learn.series', {}, 'bob')).toMatchObject({ adapters: [], feedback: [] });
  await expect(run('learn.series', { fromMs: 5, toMs: 5 })).rejects.toMatchObject({ code: 'invalid_option' });
  await expect(run('learn.series', { fromMs: 0, toMs: 2e12, bucketMs: 60_000 })).rejects.toMatchObject({
    code: 'invalid_option',
  });
});

test('[LO23] lessons: rated answers with their outcomes, and the answers that a version was trained on', async () => {
  const { run, add, teach } = desk;
  interface Lessons {
    readonly lessons: { requestId: string; query: string; correction: string | null; version: number | null }[];
    readonly isComplete: boolean;
  }
  await add();
  const rated = await teach(40);
  const corrected = await add({ query: `what does the cat do? ${'x'.repeat(600)}` });
  await run('feedback', { requestId: corrected, correction: 'It sleeps.', waitMs: 60_000 });
  const newest = await run<Lessons>('learn.lessons', { limit: 2 });
  expect(newest.isComplete).toBe(false);
  expect(newest.lessons).toMatchObject([
    {
      requestId: corrected,
      correction: 'It sleeps.',
      verdict: 'failure',
      version: null,
      outcome: { state: 'learned' },
    },
    { requestId: rated.at(-1), correction: null, verdict: 'success', quality: 1, outcome: { state: 'stored' } },
  ]);
  expect(newest.lessons[0]!.query).toHaveLength(500);
  await run('learn.run', { waitMs: 50_000 });
  const trained = await run<Lessons>('learn.lessons', { version: 1, limit: 500 });
  const [version] = (await run<{ versions: Version[] }>('learn.history')).versions;
  expect(trained.lessons).toHaveLength(version!.numLearnedFrom);
  expect(trained.isComplete).toBe(true);
  expect(trained.lessons.every((one) => one.version === 1)).toBe(true);
  // Held-out requests are rated, too, but no version is trained on them.
  const all = await run<Lessons>('learn.lessons', { limit: 500 });
  expect(all.lessons).toHaveLength(rated.length + 1);
  const trainedIds = all.lessons.flatMap((one) => (one.version === 1 ? [one.requestId] : []));
  expect(trainedIds.sort()).toEqual(trained.lessons.map(({ requestId }) => requestId).sort());
  expect(trainedIds.length).toBeLessThan(all.lessons.length);
  expect(await run('learn.lessons', {}, 'bob')).toEqual({ lessons: [], isComplete: true });
  await expect(run('learn.lessons', { version: 9 })).rejects.toMatchObject({ code: 'not_found' });
});
