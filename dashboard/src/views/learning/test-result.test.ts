import { expect, test } from 'vitest';
import { describeTest } from './test-result.ts';

const METRICS = { held_out_before: 2, held_out_mean: -0.5, held_out_high: -0.2, held_out_count: 8 };

test('an accepted version says how much better it is, and how sure that is', () => {
  expect(describeTest({ isAccepted: true, metrics: METRICS })).toBe(
    'Error 25 % lower on 8 answers it had not seen. At least 10 % lower with 95 % confidence.',
  );
  expect(describeTest({ isAccepted: true, metrics: {} })).toBe('');
});

test('a refused version names the uncertain improvement only if that was the reason', () => {
  expect(describeTest({ isAccepted: false, metrics: { ...METRICS, held_out_high: 0.1 } })).toBe(
    'Not used: no certain improvement on 8 answers it had not seen.',
  );
  for (const metrics of [METRICS, {}]) {
    expect(describeTest({ isAccepted: false, metrics })).toContain('Not used: it failed another check');
  }
});
