/** Bins per factor of two: neighbours differ by 4.4 %, so percentiles are within 2.2 %. */
const PER_OCTAVE = 16;
/** Shorter times count as this. */
const MIN_MS = 0.01;
/** Up to 45 minutes; longer times count as that. */
const NUM_BINS = 28 * PER_OCTAVE;

/** Number of times per bin. */
export type LogBins = Uint32Array;

export const createBins = (): LogBins => new Uint32Array(NUM_BINS);

/** Counts a time; ignores NaN. */
export function addTo(bins: LogBins, ms: number): void {
  if (Number.isNaN(ms)) return;
  const bin = Math.floor(Math.log2(Math.max(ms, MIN_MS) / MIN_MS) * PER_OCTAVE);
  bins[Math.min(bin, NUM_BINS - 1)]!++;
}

/** Nearest-rank percentiles, each the middle of its bin. */
export interface WindowPercentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly count: number;
}

/** Null: no times. */
export function percentilesOf(all: Iterable<LogBins>): WindowPercentiles | null {
  const sum = new Float64Array(NUM_BINS);
  let count = 0;
  for (const bins of all) {
    for (let i = 0; i < NUM_BINS; i++) {
      sum[i]! += bins[i]!;
      count += bins[i]!;
    }
  }
  if (count === 0) return null;
  const at = (share: number): number => {
    let left = Math.ceil(share * count);
    let bin = 0;
    while ((left -= sum[bin]!) > 0) bin++;
    return Number((MIN_MS * 2 ** ((bin + 0.5) / PER_OCTAVE)).toPrecision(4));
  };
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), count };
}
