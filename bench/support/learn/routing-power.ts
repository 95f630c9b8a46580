// The power of so few requests: the area of estimates that explain a known part of the outcomes' variance.
import { createRandom } from '../../../src/core/random.ts';
import type { RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');
const SHARES = [0.01, 0.02, 0.04, 0.08, 0.15, 0.3];
const NUM_DRAWS = 40;

export interface Power {
  /** By the known share of each candidate's variance: mean and deviation of the area over draws. */
  readonly rows: readonly { readonly explained: number; readonly mean: number; readonly deviation: number }[];
  /** Share that least squares explain of unseen prompts; below 0: less than the mean does. */
  readonly fitted: readonly { readonly name: string; readonly explained: number }[];
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviationOf = (values: readonly number[]): number => {
  const mean = meanOf(values);
  return Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2)));
};

/** From two uniform numbers (Box and Muller). */
const normal = (random: { next(): number }): number =>
  Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());

export function measurePower(examples: readonly RouteExample[], costs: readonly number[]): Power {
  const outcomes = examples.map((one) => one.outcomes);
  const columns = costs.map((_, i) => outcomes.map((row) => row[i]!));
  const [means, deviations] = [columns.map(meanOf), columns.map(deviationOf)];
  const rows = SHARES.map((explained) => {
    const areas = Array.from({ length: NUM_DRAWS }, (_, seed) => {
      const random = createRandom(seed + 1);
      // The best estimate with this explained share: it varies exactly as much as it explains.
      const estimates = outcomes.map(
        (row) =>
        Float64Array.from(row, (value, i) => means[i]! + explained * (value - means[i]!) + Math.sqrt(explained * (1 - explained)) * deviations[i]! * normal(random)), // prettier-ignore
      );
      return router.prepareCurve({ estimates, outcomes, costs }).area();
    });
    return { explained, mean: meanOf(areas), deviation: deviationOf(areas) };
  });
  const cosine = { ...router.RIDGE_DEFAULTS, isScaled: false };
  const estimates = router.crossFit(examples, (...all) => router.trainRidge(all.flat(), costs.length, cosine), { numFolds: 5, seed: 0 }); // prettier-ignore
  const explainedOf = (of: (row: ArrayLike<number>) => number): number => {
    const [truth, predicted] = [outcomes.map(of), estimates.map(({ qualities }) => of(qualities))];
    const errors = truth.map((value, i) => (value - predicted[i]!) ** 2);
    return 1 - meanOf(errors) / Math.max(1e-12, deviationOf(truth) ** 2);
  };
  const level = (row: ArrayLike<number>): number => meanOf(Array.from(row));
  const fitted = [
    { name: 'the mean of all', explained: explainedOf(level) },
    ...costs.slice(1).map((_, i) => ({
      name: `the ${i + 2}. less the ${i + 1}.`,
      explained: explainedOf((row) => row[i + 1]! - row[i]!),
    })),
  ];
  return { rows, fitted };
}
