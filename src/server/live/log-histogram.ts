/** Bins to a doubling: two neighbours differ by 4.4 %, so what is read is within 2.2 % of what was. */
const PER_OCTAVE = 16;
/** Below this no two tokens follow each other. */
const MIN_MS = 0.01;
/** Up to 45 minutes; longer times count as that. */
const NUM_BINS = 28 * PER_OCTAVE;

/** How many times fell into which bin; a fixed size, whatever comes. */
export type LogBins = Uint32Array;

export const createBins = (): LogBins => new Uint32Array(NUM_BINS);

/** Counts one time. What is not a number is not a time. */
export function addTo(bins: LogBins, ms: number): void {
  if (Number.isNaN(ms)) return;
  const bin = Math.floor(Math.log2(Math.max(ms, MIN_MS) / MIN_MS) * PER_OCTAVE);
  bins[Math.min(bin, NUM_BINS - 1)]!++;
}

/** By nearest rank; each is the middle of the bin its value fell into. */
export interface WindowPercentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly count: number;
}

/** Null of nothing. */
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
