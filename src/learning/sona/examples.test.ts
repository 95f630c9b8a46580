import { expect, test } from 'vitest';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import { lessonOf } from './examples.ts';

const lesson = (answer: string, correction: string | null, verdict = 'unknown') =>
  lessonOf({ ...trajectoryFixture(1, { answer }), correction, verdict } as never);

test('a correction begins with the space its answer began with, once', () => {
  expect(lesson(' blue', 'red')).toEqual({ answer: ' red', weight: 1 });
  expect(lesson('\n\nblue', 'red')).toEqual({ answer: '\n\nred', weight: 1 });
  expect(lesson(' blue', ' red')).toEqual({ answer: ' red', weight: 1 });
  expect(lesson('  blue', '\nred')).toEqual({ answer: '\nred', weight: 1 });
  expect(lesson('blue', 'red')).toEqual({ answer: 'red', weight: 1 });
});

test('praise pulls, blame pushes half as much, and a correction says more than both', () => {
  expect(lesson('blue', null, 'success')).toEqual({ answer: 'blue', weight: 1 });
  expect(lesson('blue', null, 'failure')).toEqual({ answer: 'blue', weight: -0.5 });
  expect(lesson('blue', 'red', 'failure')).toEqual({ answer: 'red', weight: 1 });
  expect(lesson('blue', null, 'partial')).toBeNull();
});
