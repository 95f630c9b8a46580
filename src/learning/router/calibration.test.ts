import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { calibrate, calibrationError, fitPlatt } from './calibration.ts';

test('[R7] stated confidence becomes the share that is right: an overconfident score is taken down', () => {
  const random = createRandom(4);
  const sample = (count: number) => {
    const raw = Array.from({ length: count }, () => 0.5 + 0.5 * random.next());
    // Right far less often than it says: at a raw 0.99 in about half of the cases.
    return { raw, isRight: raw.map((value) => random.next() < 0.2 + 0.3 * (value - 0.5) * 2) };
  };
  const train = sample(4000);
  const fitted = fitPlatt(train.raw, train.isRight);
  const fresh = sample(4000);
  expect(calibrationError(fresh.raw, fresh.isRight)).toBeGreaterThan(0.1);
  expect(
    calibrationError(
      fresh.raw.map((value) => calibrate(fitted, value)),
      fresh.isRight,
    ),
  ).toBeLessThan(0.05);
  expect(calibrate(fitted, 0.9)).toBeGreaterThan(calibrate(fitted, 0.6));
});

test('[R7] a handful of lucky decisions gives no certainty', () => {
  const fitted = fitPlatt([0.9, 0.95, 0.99], [true, true, true]);
  expect(calibrate(fitted, 0.99)).toBeLessThan(0.95);
});
