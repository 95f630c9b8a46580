import { expect, test } from 'vitest';
import { hullOf, prepareCurve } from './cost-quality.ts';

const rows = (...values: number[][]) => values.map((row) => Float64Array.from(row));
const outcomes = (...values: number[][]) => values.map((row) => Float32Array.from(row));

test('[R10] the curve goes from the cheapest up, most promising first, and stops where nothing is promised', () => {
  const truth = outcomes([0, 1], [1, 1], [0, 1], [1, 0]);
  const curve = prepareCurve({
    estimates: rows([0, 0.9], [0.5, 0.6], [0, 0.5], [1, 0]),
    outcomes: truth,
    costs: [0, 1],
  });
  expect(curve.curve()).toEqual([
    { cost: 0, quality: 0.5 },
    { cost: 0.25, quality: 0.75 },
    { cost: 0.5, quality: 1 },
    { cost: 0.75, quality: 1 },
  ]);
});

test('[R10] equal estimates switch together: no area comes of the order of a file', () => {
  const truth = outcomes([0, 1], [0, 1], [1, 1], [1, 1]);
  const same = truth.map(() => Float64Array.of(0, 1));
  expect(prepareCurve({ estimates: same, outcomes: truth, costs: [0, 1] }).area()).toBeCloseTo(0, 12);
  const oracle = truth.map((row) => Float64Array.from(row));
  // Half the requests bought first bring all there is: the line is passed by a triangle of 1/2 · 1/2 · 1/2.
  expect(prepareCurve({ estimates: oracle, outcomes: truth, costs: [0, 1] }).area()).toBeCloseTo(0.125, 2);
});

test('[R10] the blind mixture is the best one: dominated candidates do not lower the bar', () => {
  expect(hullOf([0.3, 0.35, 0.6, 0.5], [1, 3, 8, 24])).toEqual([
    { cost: 1, quality: 0.3 },
    { cost: 8, quality: 0.6 },
  ]);
});

test('[R10] requests counted twice are as two requests', () => {
  const truth = outcomes([0, 1], [1, 0.5], [0.2, 0.9]);
  const estimates = rows([0.1, 0.7], [0.2, 0.4], [0.6, 0.65]);
  const once = prepareCurve({ estimates, outcomes: truth, costs: [0, 1] });
  const twice = prepareCurve({
    estimates: [...estimates, estimates[0]!],
    outcomes: [...truth, truth[0]!],
    costs: [0, 1],
  });
  expect(once.area(Float64Array.of(2, 1, 1))).toBeCloseTo(twice.area(), 12);
});

test('[R10] at one budget the curve and the best blind mixture have equal cost', () => {
  const truth = outcomes([0, 1], [0, 1], [1, 1], [1, 1]);
  const oracle = prepareCurve({
    estimates: truth.map((row) => Float64Array.from(row)),
    outcomes: truth,
    costs: [1, 3],
  });
  expect(oracle.at(0)).toEqual({ quality: 0.5, blind: 0.5 });
  expect(oracle.at(0.25)).toEqual({ quality: 0.75, blind: 0.625 });
  expect(oracle.at(0.5)).toEqual({ quality: 1, blind: 0.75 });
  expect(oracle.at(1)).toEqual({ quality: 1, blind: 1 });
  // Only the second request counts.
  expect(oracle.at(0.5, Float64Array.of(0, 1, 0, 0))).toEqual({ quality: 0.5, blind: 0.5 });
});
