import { expect, test } from 'vitest';
import { calibrate } from './calibration.ts';
import { fitConfidence } from './cross-fit.ts';
import { FREE, learnable, SMALL_AND_LARGE } from './test-examples.contract.ts';

test('[R7] [R9] of one known outcome only praise says that the choice was right', () => {
  const { examples } = learnable(100, 3);
  const estimate = { qualities: Float64Array.of(0, 1), confidence: 0.9, why: { kind: 'best', detail: '' } } as const;
  const confidenceWhen = (share: number): number => {
    const rated = examples.map((one, i) => ({ ...one, outcomes: Float32Array.of(NaN, i < share * 100 ? 1 : 0) }));
    const context = { candidates: SMALL_AND_LARGE, weights: FREE, shrinkage: null };
    return calibrate(fitConfidence(rated, rated.map(() => estimate), context), 0.9); // prettier-ignore
  };
  expect(confidenceWhen(0.5)).toBeCloseTo(0.5, 1);
  expect(confidenceWhen(0.9)).toBeCloseTo(0.9, 1);
});
