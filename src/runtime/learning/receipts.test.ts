import { beforeEach, describe, expect, test } from 'vitest';
import { createFeedbackLog } from './feedback-log.ts';
import { createTestLearning, type TestLearning } from './operations/harness.contract.ts';

let desk: TestLearning;
beforeEach(async () => {
  desk = await createTestLearning({}, 'small', { corrections: true });
});

const give = async (feedback: object, changes: object = {}) => {
  const requestId = await desk.add({ prompt: 'who?', ...changes });
  await desk.run('feedback', { requestId, waitMs: 60_000, ...feedback });
  return requestId;
};
const receipt = (requestId: string) =>
  desk.run<{ outcome: { state: string; reason: string; supersedes: string[] } }>('learn.receipt', { requestId });
const stateOf = async (requestId: string) => (await receipt(requestId)).outcome.state;
const CAT = { query: 'What is the name of my cat?', userId: 'ann' };

describe('[LO20] the outcome of feedback', () => {
  test('is remembered for a correction, without a step of the model', async () => {
    const requestId = await give({ correction: 'Pim' }, CAT);
    expect(await receipt(requestId)).toMatchObject({
      verdict: 'failure',
      quality: 0,
      outcome: { state: 'remembered' },
    });
    expect(desk.served.size).toBe(0);
    expect(await desk.run('learn.status')).toMatchObject({
      numCorrections: 1,
      outcomes: [{ requestId, state: 'remembered' }],
    });
  });

  test('is learned for a correction that repeats twice and for praise, with the losses', async () => {
    await give({ correction: 'a red zog' }, CAT);
    expect(await stateOf(await give({ correction: 'a red zog' }, CAT))).toBe('remembered');
    expect(desk.served.size).toBe(0);
    for (const requestId of [await give({ correction: 'a red zog' }, CAT), await give({ thumbs: 'up' })]) {
      expect(await receipt(requestId)).toMatchObject({
        outcome: {
          state: 'learned',
          lossBefore: expect.any(Number) as number,
          lossAfter: expect.any(Number) as number,
        },
      });
    }
  });

  test('is already known for a correction that the answer says', async () => {
    expect(await stateOf(await give({ correction: 'A blue zog.' }, CAT))).toBe('already-known');
    expect(desk.served.size).toBe(0);
  });

  test('is superseded by a newer correction of the same user, which names the older one', async () => {
    const first = await give({ correction: 'Tom' }, CAT);
    const other = await give({ correction: 'Rex' }, { ...CAT, userId: 'bob' });
    const second = await give({ correction: 'Pim' }, CAT);
    expect((await receipt(second)).outcome).toMatchObject({ state: 'remembered', supersedes: [first] });
    expect((await receipt(first)).outcome).toMatchObject({
      state: 'superseded',
      reason: `newer feedback counts: request ${second}`,
    });
    expect(await stateOf(other)).toBe('remembered');
  });

  test('says why nothing is learned at once', async () => {
    expect(await receipt(await give({ score: 0.5 }))).toMatchObject({
      outcome: { state: 'stored', reason: 'nothing to learn: the verdict is partial' },
    });
    const tooLong = await give({ correction: 'x'.repeat(5000) }, CAT);
    expect((await receipt(tooLong)).outcome.reason).toContain(
      'not recalled: the correction has 5000 characters; 4096 can be recalled',
    );
  });

  test('survives a restart, and is null without feedback', async () => {
    const requestId = await give({ correction: 'Pim' }, CAT);
    const log = createFeedbackLog({ memory: desk.memory, schedule: () => () => {}, report() {} });
    expect(await log.receipt('acme', `chatcmpl-${requestId}`)).toMatchObject({ outcome: { state: 'remembered' } });
    expect(await receipt(await desk.add())).toMatchObject({ verdict: 'unknown', outcome: null });
    await expect(log.receipt('other', requestId)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('[LO21] feedback on a route', () => {
  test('reaches the router, and no model', async () => {
    const requestId = await give({ thumbs: 'down', target: 'route' });
    expect(await receipt(requestId)).toMatchObject({
      verdict: 'unknown',
      quality: 0,
      outcome: { state: 'stored', reason: 'the router learns from it, and no model' },
    });
    // A comment on the answer must not turn the rating of the route into one of the answer.
    await desk.run('feedback', { requestId, comment: 'hm' });
    expect(await receipt(requestId)).toMatchObject({ verdict: 'unknown' });
    expect(desk.served.size).toBe(0);
  });

  test('requires a rating and takes no correction', async () => {
    const requestId = await desk.add();
    for (const wrong of [{ comment: 'x' }, { thumbs: 'down', correction: 'y' }]) {
      await expect(desk.run('feedback', { requestId, target: 'route', ...wrong })).rejects.toMatchObject({
        code: 'invalid_option',
        data: { option: 'target' },
      });
    }
  });
});

describe('[LO22] corrections are no longer recalled', () => {
  const recall = (user = 'ann') =>
    desk.learning.corrections.recall('acme', user, CAT.query, () => desk.memory.embed(CAT.query));

  test.each([
    ['their request', (id: string) => ({ requestId: id })],
    ['their session', () => ({ sessionId: 's1' })],
    ['their user', () => ({ userId: 'ann' })],
  ])('when %s is forgotten', async (_, input) => {
    const requestId = await give({ correction: 'Pim' }, { ...CAT, sessionId: 's1' });
    await give({ correction: 'Rex' }, { ...CAT, userId: 'bob', sessionId: 's2' });
    expect(await recall()).toMatchObject({ answer: 'Pim' });
    expect(await desk.run('learn.forget', input(requestId))).toMatchObject({ numTrajectories: 1, numCorrections: 1 });
    expect(await recall()).toBeNull();
    expect(await recall('bob')).toMatchObject({ answer: 'Rex' });
  });

  test('after its answer is rejected, until that rating is taken back', async () => {
    await give({ correction: 'Pim' }, CAT);
    const shown = { answer: 'It is Pim.', retrieved: [{ id: (await recall())!.id, isUsed: false }] };
    for (const other of [{ query: 'Where does my cat sleep at night?' }, { answer: 'It is Tom.' }]) {
      const kept = await give({ thumbs: 'down' }, { ...CAT, ...shown, ...other });
      expect((await receipt(kept)).outcome.reason).not.toContain('recalled');
      expect(await recall()).toMatchObject({ answer: 'Pim' });
    }
    const requestId = await give({ thumbs: 'down' }, { ...CAT, ...shown });
    expect((await receipt(requestId)).outcome.reason).toContain('is no longer recalled');
    expect(await recall()).toBeNull();
    await desk.run('feedback', { requestId, waitMs: 60_000, thumbs: 'up' });
    expect((await receipt(requestId)).outcome.reason).toContain('is recalled again');
    expect(await recall()).toMatchObject({ answer: 'Pim' });
  });

  test.each([
    ['a rollback', 'learn.rollback', { toVersion: 0 }],
    ['a reset', 'learn.reset', {}],
  ])('after %s', async (_, name, input) => {
    await give({ correction: 'Pim' }, CAT);
    expect(await desk.run(name, input)).toMatchObject({ serves: null, numCorrections: 1 });
    expect(await recall()).toBeNull();
  });

  test('when the tenant is erased', async () => {
    await give({ correction: 'Pim' }, CAT);
    await desk.memory.erase({ tenant: 'acme' });
    expect(await recall()).toBeNull();
  });
});
