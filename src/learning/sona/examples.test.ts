import { expect, test } from 'vitest';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import { lessonOf } from './examples.ts';

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
