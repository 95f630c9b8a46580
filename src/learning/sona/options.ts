import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import { INSTANT_LEARNING_RATE } from '../micro-lora/instant-learning-rate.ts';

export interface SonaOptions {
  /** Learning rate of loop A. Default 0.02. */
  readonly instantLearningRate?: number;
  /** Rank of the adapters of loops B and C. Default 4. */
  readonly rank?: number;
  /** Number of last layers that they adapt. Default 2. */
  readonly numLayers?: number;
  readonly learningRate?: number;
  /** Rated requests that loop B requires, without held-out ones. Default 8. */
  readonly minExamples?: number;
  /** Rated requests of one run, the newest ones. Default 200. */
  readonly maxExamples?: number;
  /** Unrated answers whose loss must not rise. Default 16. */
  readonly maxElsewhere?: number;
  /** Interval of loop B. Default one hour. */
  readonly backgroundEveryMs?: number;
  /** Time limit of loop B. Default 10 s. */
  readonly backgroundLimitMs?: number;
  /** Interval of loop C. Default one week. */
  readonly deepEveryMs?: number;
  /** Time limit of loop C. Default 10 minutes. */
  readonly deepLimitMs?: number;
  /** Longest time between two checkpoints. Default 15 s. */
  readonly sliceMs?: number;
  /** Gradients in an estimate of the Fisher information. Default 100. */
  readonly fisherSamples?: number;
}

export type ResolvedSonaOptions = Readonly<Required<SonaOptions>>;

export const resolveSonaOptions = (given?: SonaOptions): ResolvedSonaOptions =>
  resolveOptions<Required<SonaOptions>>('learning', given, {
    instantLearningRate: numberOption(INSTANT_LEARNING_RATE, 0, 1),
    rank: integerOption(4, 1, 16),
    numLayers: integerOption(2, 1, 1024),
    learningRate: numberOption(1e-3, 0, 1),
    minExamples: integerOption(8, 1, 10_000),
    maxExamples: integerOption(200, 1, 50_000),
    maxElsewhere: integerOption(16, 0, 10_000),
    backgroundEveryMs: numberOption(3_600_000, 0, 1e12),
    backgroundLimitMs: numberOption(10_000, 1, 1e9),
    deepEveryMs: numberOption(7 * 86_400_000, 0, 1e12),
    deepLimitMs: numberOption(600_000, 1, 1e9),
    sliceMs: numberOption(15_000, 1, 1e9),
    fisherSamples: integerOption(100, 1, 100_000),
  });
