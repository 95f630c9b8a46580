// Feedback on answers, and the parts of it that are not learned.
import { beforeEach, describe, expect, test } from 'vitest';
import { createTestLearning, type TestLearning } from './harness.contract.ts';

let desk: TestLearning;
beforeEach(async () => {
  desk = await createTestLearning();
});

const hashOf = (tenant = 'acme') => desk.served.get(tenant)?.instant?.contentHash ?? null;
const say = (requestId: string, words: object, tenant?: string) =>
  desk.run<{ verdict: string; quality: number | null; learned: { state: string; reason: string } }>(
    'feedback',
    { requestId, waitMs: 60_000, ...words },
    tenant,
  );

describe('[LO16] words that teach nothing', () => {
  test('a comment is kept and changes nothing, also of an answer that was judged', async () => {
    const id = await desk.add();
    const nothing = {
      learned: { state: 'nothing', reason: 'nothing to learn: a comment is only stored' },
    };
    expect(await say(id, { comment: 'hm' })).toMatchObject({ verdict: 'unknown', quality: null, ...nothing });
    expect(desk.served.size).toBe(0);
    await say(id, { thumbs: 'up' });
    const hash = hashOf();
    expect(await say(id, { comment: 'hm!' })).toMatchObject({ verdict: 'success', ...nothing });
    expect(hashOf()).toBe(hash);
    expect((await desk.learning.trajectories.get('acme', id))!.feedback.map(({ comment }) => comment)).toEqual([
      'hm',
      null,
      'hm!',
    ]);
  });

  test('the same word twice is learned once; another word, or after a reset, again', async () => {
    const id = await desk.add();
    for (const words of [{ thumbs: 'up' }, { correction: 'a red zog' }, { correction: 'a green zog' }, { score: 0 }]) {
      const before = hashOf();
      expect(await say(id, words)).toMatchObject({ learned: { state: words.score === 0 ? 'nothing' : 'applied' } });
      const after = hashOf();
      expect(after === before).toBe(words.score === 0);
      expect(await say(id, words)).toMatchObject({
        learned: { state: 'nothing', reason: expect.stringContaining('the same feedback') as string },
      });
      expect(hashOf()).toBe(after);
    }
    await desk.run('learn.reset');
    expect(await say(id, { score: 0 })).toMatchObject({ learned: { state: 'applied' } });
  });

  test('a score in the middle is kept and teaches nothing', async () => {
    for (const score of [0.3, 0.5, 0.69]) {
      expect(await say(await desk.add(), { score })).toMatchObject({
        verdict: 'partial',
        learned: { state: 'nothing' },
      });
    }
    expect(desk.served.size).toBe(0);
  });
});

describe('[LO12] the last word', () => {
  test('praise after a correction is about the answer; blame leaves the correction', async () => {
    const [changed, firm] = [await desk.add(), await desk.add()];
    for (const id of [changed, firm]) await say(id, { correction: 'a red zog' });
    await say(changed, { thumbs: 'up' });
    await say(firm, { thumbs: 'down' });
    const kept = async (id: string) => (await desk.learning.trajectories.get('acme', id))!;
    expect(await kept(changed)).toMatchObject({ correction: null, verdict: 'success' });
    expect(await kept(firm)).toMatchObject({ correction: 'a red zog', verdict: 'failure' });
  });

  test('a score and thumbs that contradict each other are refused; the same twice is fine', async () => {
    const id = await desk.add();
    for (const words of [
      { score: 1, thumbs: 'down' },
      { score: 0, thumbs: 'up' },
      { score: 0.9, thumbs: 'up' },
    ]) {
      await expect(say(id, words)).rejects.toMatchObject({ code: 'invalid_option' });
    }
    expect((await desk.learning.trajectories.get('acme', id))!.feedback).toEqual([]);
    expect(await say(id, { score: 1, thumbs: 'up' })).toMatchObject({ quality: 1 });
  });
});

test('[LO13] the status tells of single answers, and no longer once they are in a version', async () => {
  const models = async (tenant?: string) => (await desk.run<{ models: { numSingleAnswers: number }[] }>('learn.status', {}, tenant)).models; // prettier-ignore
  expect(await models()).toMatchObject([{ model: 'small', serves: null, numSingleAnswers: 0 }]);
  await say(await desk.add(), { thumbs: 'up' });
  await say(await desk.add(), { thumbs: 'down' });
  expect(await models()).toMatchObject([{ numSingleAnswers: 2 }]);
  expect(await models('bob')).toMatchObject([{ numSingleAnswers: 0 }]);
  await desk.run('learn.reset');
  expect(await models()).toMatchObject([{ numSingleAnswers: 0 }]);
});

test('[LO14] an erased tenant has the model as in its file at once, and nothing of it is left', async () => {
  const id = await desk.add();
  await desk.add({}, 'bob');
  await say(id, { thumbs: 'up' });
  await desk.learning.prepare('acme', 'small');
  expect(hashOf()).not.toBeNull();
  await desk.memory.erase({ tenant: 'acme' });
  expect(desk.served.get('acme')).toEqual({ trained: null, instant: null });
  await desk.learning.prepare('acme', 'small');
  expect(desk.served.get('acme')).toEqual({ trained: null, instant: null });
  expect(await desk.run('learn.status')).toMatchObject({ numRequests: { success: 0, unknown: 0 }, numPatterns: 0 });
  expect(await desk.run('learn.status', {}, 'bob')).toMatchObject({ numRequests: { unknown: 1 } });
  await expect(say(id, { thumbs: 'up' })).rejects.toMatchObject({ code: 'not_found' });
});

test('[LO1] a receipt has what was learned, and nothing it was computed with', async () => {
  const { learned } = await desk.learning.feedback('acme', { requestId: await desk.add(), score: 1 });
  const keys = ['elapsedMs', 'isApplied', 'lossAfter', 'lossBefore', 'outcome', 'reason', 'supersedes', 'version'];
  const report = await learned;
  expect(Object.keys(report).toSorted()).toEqual(keys);
  expect(report).toMatchObject({ isApplied: true, version: 0 });
  const nothing = await (await desk.learning.feedback('acme', { requestId: await desk.add(), score: 0.5 })).learned;
  expect(Object.keys(nothing).toSorted()).toEqual(keys);
  expect(nothing).toMatchObject({ isApplied: false, version: null });
});

test('[LO15] a flood of contradictions is cut off, and what is added stays small', async () => {
  const states: string[] = [];
  const ids: string[] = [];
  for (let i = 0; i < 80; i++) ids.push(await desk.add({ query: `${i % 3}?`, answer: i % 2 === 0 ? 'a blue zog' : 'a red cat' })); // prettier-ignore
  for (const [i, id] of ids.entries()) {
    const words = { score: Math.floor(i / 4) % 2 };
    states.push(await say(id, words).then((one) => one.learned.state, (error: { code: string }) => error.code)); // prettier-ignore
  }
  expect(states.slice(0, 60)).not.toContain('overloaded');
  expect(states.slice(60)).toEqual(Array.from({ length: 20 }, () => 'overloaded'));
  const { factors } = desk.served.get('acme')!.instant!;
  let squares = 0;
  const { a, b, rank, numCols, numRows, scale } = factors[0]!;
  for (let row = 0; row < numRows; row++) {
    for (let col = 0; col < numCols; col++) {
      let sum = 0;
      for (let r = 0; r < rank; r++) sum += b[row * rank + r]! * a[r * numCols + col]!;
      squares += (scale * sum) ** 2;
    }
  }
  expect(Math.sqrt(squares)).toBeLessThanOrEqual(1.001);
  expect(Math.sqrt(squares)).toBeGreaterThan(0);
});
