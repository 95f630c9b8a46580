import { expect, test } from 'vitest';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import { dropSuperseded, findContradictions } from './contradictions.ts';
import { isSameLesson } from './same-lesson.ts';

let atMs = 0;
const rated = (changes: Partial<Trajectory>): Trajectory => {
  atMs++;
  const entry = { atMs, source: 'api', score: null, comment: null, hasCorrection: true } as const;
  const base = trajectoryFixture(atMs, { query: 'My dog?', answer: 'Rex', userId: 'eve' });
  const rest = {
    correction: null,
    verdict: 'failure',
    feedback: [entry],
    isDistilled: false,
    expiresMs: null,
  } as const;
  return { ...base, ...rest, ...changes } as Trajectory;
};

test('the newest correction of the same user counts', () => {
  const [bello, waldi] = [rated({ correction: 'Bello' }), rated({ correction: 'Waldi', query: 'my dog' })];
  const all = [bello, waldi];
  expect(findContradictions(waldi, all)).toMatchObject({ replacedBy: null, supersedes: [bello] });
  expect(findContradictions(bello, all).replacedBy).toBe(waldi);
  expect(dropSuperseded(all)).toEqual([waldi]);
  // Told once: a second correction with the same text replaces nothing new.
  const again = rated({ correction: 'Waldi.' });
  expect(findContradictions(again, [...all, again]).supersedes).toEqual([]);
});

test('another user keeps their correction, and the contradiction is counted', () => {
  const [eve, bob] = [rated({ correction: 'Bello' }), rated({ correction: 'Waldi', userId: 'bob' })];
  expect(findContradictions(bob, [eve, bob])).toEqual({ replacedBy: null, supersedes: [], numOtherUsers: 1 });
  expect(dropSuperseded([eve, bob])).toEqual([eve, bob]);
});

test('accepting and rejecting the same answer is a contradiction; praise of other words is not', () => {
  const down = rated({ verdict: 'failure' });
  const up = rated({ verdict: 'success' });
  expect(findContradictions(up, [down, up]).supersedes).toEqual([down]);
  const correction = rated({ correction: 'Bello' });
  expect(findContradictions(rated({ verdict: 'success' }), [correction]).supersedes).toEqual([]);
});

test('copies are recognized by words, not by case or punctuation', () => {
  const one = { question: 'What is the name of my dog?', answer: 'Bello' };
  expect(isSameLesson(one, { question: 'what is the  name of my dog', answer: 'Waldi' })).toBe(true);
  expect(isSameLesson(one, { question: 'So what is the name of my dog?', answer: 'bello!' })).toBe(true);
  expect(isSameLesson(one, { question: 'So what is the name of my dog?', answer: 'Waldi' })).toBe(false);
  expect(isSameLesson(one, { question: 'Who is there?', answer: 'Bello' })).toBe(false);
});
