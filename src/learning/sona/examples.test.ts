import { expect, test } from 'vitest';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import { buildExamples, lessonOf } from './examples.ts';
import type { LearningModel } from './types.ts';

const lesson = (answer: string, correction: string | null, verdict = 'unknown') =>
  lessonOf({ ...trajectoryFixture(1, { answer }), correction, verdict } as never);

test('a correction gets the leading space of its answer, once', () => {
  expect(lesson(' blue', 'red')).toEqual({ answer: ' red', weight: 1 });
  expect(lesson('\n\nblue', 'red')).toEqual({ answer: '\n\nred', weight: 1 });
  expect(lesson(' blue', ' red')).toEqual({ answer: ' red', weight: 1 });
  expect(lesson('  blue', '\nred')).toEqual({ answer: '\nred', weight: 1 });
  expect(lesson('blue', 'red')).toEqual({ answer: 'red', weight: 1 });
});

test('an accepted answer weighs 1, a rejected one −0.5, and a correction replaces both', () => {
  expect(lesson('blue', null, 'success')).toEqual({ answer: 'blue', weight: 1 });
  expect(lesson('blue', null, 'failure')).toEqual({ answer: 'blue', weight: -0.5 });
  expect(lesson('blue', 'red', 'failure')).toEqual({ answer: 'red', weight: 1 });
  expect(lesson('blue', null, 'partial')).toBeNull();
});

test('[LB18] the end of an answer is learned only if the model or a user ended it there', async () => {
  const cutOff = new Map<string, boolean | undefined>();
  const model = {
    async encodeExample(_trajectory, answer, options) {
      cutOff.set(answer, options?.isCutOff);
      return { tokenIds: [1, 2], numPromptTokens: 1 };
    },
  } as Partial<LearningModel> as LearningModel;
  const one = (answer: string, changes: object) =>
    ({ ...trajectoryFixture(1, { answer }), correction: null, verdict: 'success', ...changes }) as never;
  const rated = [
    one('limited', { isComplete: false }),
    one('of an older version', {}),
    one('whole', { isComplete: true }),
    one('limited, corrected', { isComplete: false, correction: 'right' }),
  ];
  await buildExamples(model, rated, [one('unrated', { verdict: 'unknown', isComplete: false })]);
  expect(Object.fromEntries(cutOff)).toEqual({
    limited: true,
    'of an older version': true,
    whole: false,
    right: false,
    unrated: true,
  });
});

test('[LG2] unrated answers that are probably bad are not protected; ratings count whatever the estimate says', async () => {
  const encoded: string[] = [];
  const model = {
    async encodeExample(_trajectory, answer) {
      encoded.push(answer);
      return { tokenIds: [1, 2], numPromptTokens: 1 };
    },
  } as Partial<LearningModel> as LearningModel;
  const one = (answer: string, changes: object) => ({ ...trajectoryFixture(1, { answer }), correction: null, ...changes }) as never; // prettier-ignore
  const unrated = [
    one('a loop', { verdict: 'unknown', estimate: 0.05 }),
    one('fair', { verdict: 'unknown', estimate: 0.06 }),
    one('of an older version', { verdict: 'unknown' }),
  ];
  const { elsewhere } = await buildExamples(model, [one('praised', { verdict: 'success', estimate: 0.01 })], unrated);
  expect(encoded).toEqual(['praised', 'fair', 'of an older version']);
  expect(elsewhere).toHaveLength(2);
});
