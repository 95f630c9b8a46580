import { createRandom } from '../../core/random.ts';

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** 95 % interval of a statistic over resampled units: `units[i]` is the unit of row i, and rows of a unit stay together. */
export function bootstrap(
  units: readonly string[],
  statistic: (counts: Float64Array) => number,
  numResamples: number,
  seed: number,
): Interval {
  const random = createRandom(seed);
  const names = [...new Set(units)];
  const index = new Map(names.map((name, i) => [name, i]));
  const unitOf = Int32Array.from(units, (unit) => index.get(unit)!);
  const values = Array.from({ length: numResamples }, () => {
    const drawn = new Float64Array(names.length);
    for (let i = 0; i < names.length; i++) drawn[Math.floor(random.next() * names.length)]! += 1;
    return statistic(Float64Array.from(unitOf, (unit) => drawn[unit]!));
  }).sort((a, b) => a - b);
  return { low: values[Math.floor(numResamples * 0.025)]!, high: values[Math.ceil(numResamples * 0.975) - 1]! };
}

/** 95 % interval of a percentile of ascending values. */
export function bootstrapPercentile(sorted: readonly number[], share: number): Interval {
  const units = sorted.map((_, i) => String(i));
  const statistic = (counts: Float64Array): number => {
    let left = share * sorted.length;
    const at = counts.findIndex((count) => (left -= count) < 0);
    return sorted[at < 0 ? sorted.length - 1 : at]!;
  };
  return bootstrap(units, statistic, 400, 1);
}
