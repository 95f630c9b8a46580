import { describe, expect, test } from 'vitest';
import { trajectoryFixture } from '../../learning/trajectories/harness.contract.ts';
import type { NewTrajectory } from '../../learning/trajectories/trajectories.ts';
import { verdictOf } from '../../learning/trajectories/verdict.ts';
import { createImplicitSignals, IMPLICIT_SCORES } from './implicit-signals.ts';
import { createTestLearning } from './operations/harness.contract.ts';

const user = (content: string) => ({ role: 'user', content });
const bot = (content: string) => ({ role: 'assistant', content });
const TALK = [user('hi'), bot('hello'), user('where is my card?')];
let number = 0;
const requestOf = (prompt: NewTrajectory['prompt'], changes: Partial<NewTrajectory> = {}) =>
  trajectoryFixture(++number, { prompt, sessionId: null, userId: null, embedding: null, space: null, createdMs: 1000, ...changes }); // prettier-ignore

describe('[IS1] what is noticed', () => {
  test('the same again is a retry, the last turn in other words an edit, of the answer before', () => {
    const signals = createImplicitSignals();
    const [first, second, third] = [requestOf(TALK), requestOf(TALK), requestOf([...TALK.slice(0, 2), user('where?')])];
    expect(signals.notice('acme', first)).toBeNull();
    expect(signals.notice('acme', second)).toEqual({ requestId: first.requestId, signal: 'retry' });
    expect(signals.notice('acme', third)).toEqual({ requestId: second.requestId, signal: 'edit' });
    const text = requestOf('Once upon a time');
    expect(signals.notice('acme', text)).toBeNull();
    expect(signals.notice('acme', requestOf('Once upon a time'))).toEqual({
      requestId: text.requestId,
      signal: 'retry',
    });
  });

  test('a conversation that goes on says nothing; nor do others that begin alike', () => {
    const signals = createImplicitSignals();
    for (const prompt of [TALK, [...TALK, bot('there'), user('thanks')], [user('hi')], [user('good day')], 'a', 'b']) {
      expect(signals.notice('acme', requestOf(prompt))).toBeNull();
    }
    const named = { sessionId: 's1' };
    const first = requestOf([user('hi')], named);
    expect(signals.notice('acme', first)).toBeNull();
    expect(signals.notice('acme', requestOf([user('hi!')], named))).toEqual({ requestId: first.requestId, signal: 'edit' }); // prettier-ignore
  });

  test('only of the same tenant, session, user and model, and not after ten minutes', () => {
    const signals = createImplicitSignals();
    signals.notice('acme', requestOf(TALK));
    expect(signals.notice('bob', requestOf(TALK))).toBeNull();
    for (const changes of [{ sessionId: 's' }, { userId: 'u' }, { model: 'large' }, { createdMs: 1001 + 600_000 }]) {
      expect(signals.notice('acme', requestOf(TALK, changes)), JSON.stringify(changes)).toBeNull();
    }
    signals.forget('bob');
    expect(signals.notice('bob', requestOf(TALK))).toBeNull();
    expect(signals.notice('bob', requestOf(null))).toBeNull();
    expect(signals.notice('bob', requestOf([bot('and')]))).toBeNull();
  });

  test('no signal is a verdict, so no token is trained on a guess', () => {
    for (const score of Object.values(IMPLICIT_SCORES)) {
      expect(verdictOf(score)).toBe('partial');
      expect(score).toBeLessThan(0.5);
    }
  });
});

describe('[IS2] what becomes of it', () => {
  const observed = async (implicitFeedback: boolean) => {
    const desk = await createTestLearning({}, 'small', { implicitFeedback });
    const see = async (prompt: NewTrajectory['prompt'], how: 'observe' | 'observeStopped' = 'observe') => {
      const one = requestOf(prompt, { model: 'small', createdMs: Math.floor(desk.memory.services.now()) });
      desk.learning[how]('acme', one);
      await desk.learning.settle();
      return () => desk.learning.trajectories.get('acme', one.requestId);
    };
    return { desk, see };
  };

  test('nothing unless it is wanted, and what a client left is not kept then', async () => {
    const { see, desk } = await observed(false);
    const first = await see(TALK);
    await see(TALK);
    expect(await first()).toMatchObject({ quality: null, feedback: [] });
    expect(await (await see(TALK, 'observeStopped'))()).toBeNull();
    expect(desk.told).toEqual([]);
  });

  test('a quality below the middle with its reason, which no loop trains on, and nothing serves', async () => {
    const { see, desk } = await observed(true);
    const first = await see(TALK);
    const second = await see(TALK);
    const stopped = await see('Once', 'observeStopped');
    expect(await first()).toMatchObject({
      quality: 0.35,
      verdict: 'partial',
      feedback: [{ source: 'implicit', score: 0.35, comment: 'asked again', hasCorrection: false }],
    });
    expect(await second()).toMatchObject({ quality: null, feedback: [] });
    expect(await stopped()).toMatchObject({ quality: 0.4, feedback: [{ source: 'implicit', comment: 'stopped' }] });
    expect(desk.served.size).toBe(0);
    expect(await desk.run('learn.run', { waitMs: 50_000 })).toMatchObject({ report: { numTrained: 0, version: null } });
  });

  test('explicit feedback takes precedence, given before or after', async () => {
    const { see, desk } = await observed(true);
    const [first] = [await see(TALK)];
    const { requestId } = (await first())!;
    await desk.run('feedback', { requestId, thumbs: 'up' });
    const second = await see(TALK);
    expect(await first()).toMatchObject({ quality: 1, feedback: [{ source: 'api' }] });
    await see(TALK);
    expect(await second()).toMatchObject({ quality: 0.35 });
    await desk.run('feedback', { requestId: (await second())!.requestId, thumbs: 'up' });
    expect(await second()).toMatchObject({ quality: 1, verdict: 'success' });
  });
});
