import { clusteredChange } from '../gate/clustered.ts';
import type { Interval } from './bootstrap.ts';

/** Positions of all relevant texts of one query in a ranking, from 0; Infinity: not among the results. */
export type RelevantRanks = readonly number[];

/** A mean with its 95 % interval. */
export interface Figure extends Interval {
  readonly mean: number;
}

/** 97.5 % point of the normal distribution. */
const Z = 1.96;

/**
 * Wilson's score interval of a mean of values from 0 to 1: such values vary at most like hits and misses, so it is never too narrow. A
 * bootstrap of twelve hits out of twelve would claim certainty.
 */
export function boundedFigure(values: readonly number[]): Figure {
  const count = values.length;
  const mean = meanOf(values);
  const scale = 1 + (Z * Z) / count;
  const centre = (mean + (Z * Z) / (2 * count)) / scale;
  const half = (Z * Math.sqrt((mean * (1 - mean)) / count + (Z * Z) / (4 * count * count))) / scale;
  return { mean, low: Math.min(mean, centre - half), high: Math.max(mean, centre + half) };
}

/** Share of the relevant texts among the first k. */
export const recallAt = (ranks: RelevantRanks, k: number): number =>
  ranks.filter((rank) => rank < k).length / ranks.length;

/** 1 / position of the first relevant text. */
export const reciprocalRank = (ranks: RelevantRanks): number => 1 / (Math.min(...ranks) + 1);

/** Figures of one method by name: `recall@K` and `MRR`, and by how much they exceed those of a baseline. */
export interface RetrievalRow {
  readonly name: string;
  readonly figures: Readonly<Record<string, Figure>>;
  /** This method minus the baseline, paired by query; null for the baseline. */
  readonly gains: Readonly<Record<string, Figure>> | null;
}

/** Compares rankings of the same queries; the first method is the baseline. */
export function compareRetrieval(
  methods: Readonly<Record<string, readonly RelevantRanks[]>>,
  cutoffs: readonly number[],
): RetrievalRow[] {
  const measures: Readonly<Record<string, (ranks: RelevantRanks) => number>> = {
    ...Object.fromEntries(cutoffs.map((k) => [`recall@${k}`, (ranks: RelevantRanks) => recallAt(ranks, k)])),
    MRR: reciprocalRank,
  };
  const [baseline] = Object.values(methods);
  return Object.entries(methods).map(([name, rankings]) => {
    const figuresOf = (toFigure: (measure: (ranks: RelevantRanks) => number) => Figure): Record<string, Figure> =>
      Object.fromEntries(Object.entries(measures).map(([measure, valueOf]) => [measure, toFigure(valueOf)]));
    return {
      name,
      figures: figuresOf((valueOf) => boundedFigure(rankings.map(valueOf))),
      gains: rankings === baseline ? null : figuresOf((valueOf) => pairedGain(baseline!.map(valueOf), rankings.map(valueOf))), // prettier-ignore
    };
  });
}

/** Mean of after − before with its interval, pair by pair; rows of one group stay together. Default: each row is a group. */
export function pairedGain(
  before: readonly number[],
  after: readonly number[],
  groups: readonly string[] = before.map((_, i) => String(i)),
): Figure {
  const { mean, low, high } = clusteredChange(before, after, groups);
  return { mean, low, high };
}

/** Positions of rows in an order of all rows. */
export function ranksIn(order: readonly number[], relevant: readonly number[]): RelevantRanks {
  const positions = new Map(order.map((row, i) => [row, i]));
  return relevant.map((row) => positions.get(row) ?? Infinity);
}

export const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
