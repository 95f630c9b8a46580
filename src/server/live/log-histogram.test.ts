import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { percentiles } from '../../memory/audit/aggregate.ts';
import { addTo, createBins, percentilesOf } from './log-histogram.ts';

test('percentiles are within 2.2 % of the exact values for any split into seconds', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.01, max: 2_000_000, noNaN: true }), { minLength: 1, maxLength: 300 }),
      fc.integer({ min: 1, max: 5 }),
      (values, numParts) => {
        const parts = Array.from({ length: numParts }, createBins);
        for (const [index, value] of values.entries()) addTo(parts[index % numParts]!, value);
        const exact = percentiles(values)!;
        const found = percentilesOf(parts)!;
        expect(found.count).toBe(values.length);
        for (const name of ['p50', 'p90', 'p99'] as const) {
          expect(Math.abs(found[name] / exact[name] - 1), `${name} ${found[name]} of ${exact[name]}`).toBeLessThan(
            0.0225,
          );
        }
      },
    ),
  );
});

test('returns null without times, clamps times out of range and ignores NaN', () => {
  expect(percentilesOf([])).toBeNull();
  expect(percentilesOf([createBins()])).toBeNull();
  const bins = createBins();
  for (const value of [Number.NaN, -1, 0, Infinity]) addTo(bins, value);
  expect(percentilesOf([bins])).toMatchObject({ count: 3 });
});
