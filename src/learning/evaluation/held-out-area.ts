import { createRandom } from '../../core/random.ts';
import { type Candidate, type PreparedCurve, prepareCurve, type RouteExample } from '../router/index.ts';
import { bootstrap, type Interval } from './bootstrap.ts';

/** Cost is on the curve, not in the utility. */
export const FREE = { perSecond: 0, perCost: 0 };

/** Candidates that differ only in their outcomes. */
export const candidatesOf = (names: readonly string[]): Candidate[] =>
  names.map((id) => ({ id, kind: 'remote', pricePerToken: 0, latencyMs: 0 }));

/** Moves the outcomes of one request to another, for all models together: costs and relations stay. */
export function shuffleOutcomes(examples: readonly RouteExample[], seed: number): RouteExample[] {
  const random = createRandom(seed);
  const outcomes = examples.map((example) => example.outcomes);
  for (let i = outcomes.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [outcomes[i], outcomes[j]] = [outcomes[j]!, outcomes[i]!];
  }
  return examples.map((example, i) => ({ ...example, outcomes: outcomes[i]! }));
}

/** A policy's estimates for held-out requests, fold by fold: each fold has another router. */
export interface HeldOut {
  readonly outcomes: readonly Float32Array[];
  /** The router that judged it. */
  readonly folds: readonly number[];
  /** Groups with correlated outcomes: subjects. */
  readonly clusters: readonly string[];
  readonly costs: readonly number[];
}

export type AreaOf = (counts?: Float64Array) => number;

/**
 * Weighted mean over folds of the area between the fold's curve and its random mixture. Five routers have five scales:
 * on one common curve even five constants would gain or lose by fold.
 */
export const prepareArea = (heldOut: HeldOut, estimates: readonly Float64Array[]): AreaOf =>
  overFolds(heldOut, estimates, (curve, weights) => curve.area(weights));

/** The same for the quality at one budget, of the router and of the best blind mixture of equal cost. */
export function prepareBudget(
  heldOut: HeldOut,
  estimates: readonly Float64Array[],
  share: number,
): { readonly quality: AreaOf; readonly blind: AreaOf } {
  return {
    quality: overFolds(heldOut, estimates, (curve, weights) => curve.at(share, weights).quality),
    blind: overFolds(heldOut, estimates, (curve, weights) => curve.at(share, weights).blind),
  };
}

function overFolds(
  { outcomes, folds, costs }: HeldOut,
  estimates: readonly Float64Array[],
  statistic: (curve: PreparedCurve, weights: Float64Array) => number,
): AreaOf {
  const parts = [...new Set(folds)].map((fold) => {
    const rows = folds.flatMap((one, i) => (one === fold ? [i] : []));
    const curve = prepareCurve({
      estimates: rows.map((i) => estimates[i]!),
      outcomes: rows.map((i) => outcomes[i]!),
      costs,
    });
    return { rows, curve };
  });
  return (counts) => {
    let [sum, total] = [0, 0];
    for (const { rows, curve } of parts) {
      const weights = new Float64Array(rows.length);
      let size = 0;
      for (let i = 0; i < rows.length; i++) size += weights[i] = counts?.[rows[i]!] ?? 1;
      // A resample may have none of the subjects of a fold.
      if (size > 0) sum += size * statistic(curve, weights);
      total += size;
    }
    return sum / total;
  };
}

export interface GainRow {
  readonly name: string;
  /** On held-out groups of the training parts: the basis of the choice. */
  readonly validation: number;
  readonly area: number;
  readonly byRequest: Interval;
  readonly byCluster: Interval;
  /** Share of the oracle's area. */
  readonly ofOracle: number;
}

export function intervalsOf(
  heldOut: HeldOut,
  area: AreaOf,
  numResamples: number,
): Pick<GainRow, 'byRequest' | 'byCluster'> {
  const requests = heldOut.outcomes.map((_, i) => String(i));
  const byRequest = bootstrap(requests, area, numResamples, 1);
  const isSame = new Set(heldOut.clusters).size === requests.length;
  return { byRequest, byCluster: isSame ? byRequest : bootstrap(heldOut.clusters, area, numResamples, 2) };
}
