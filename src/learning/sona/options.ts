import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import { INSTANT_LEARNING_RATE } from '../micro-lora/instant-learning-rate.ts';

export interface SonaOptions {
  /** Step of an instant update. Default 0.02. */
  readonly instantLearningRate?: number;
  /** Of the adapters that loops B and C train. Default 4. */
  readonly rank?: number;
  /** The last so many layers. Default 2. */
  readonly numLayers?: number;
  readonly learningRate?: number;
  /** Rated requests, not counting those held out, before loop B runs. Default 8. */
  readonly minExamples?: number;
  /** The newest so many. Default 200. */
  readonly maxExamples?: number;
  /** Unrated answers that must stay as they are. Default 16. */
  readonly maxElsewhere?: number;
  /** Between two runs of loop B. Default an hour. */
  readonly backgroundEveryMs?: number;
  /** Longest run of loop B. Default 10 s. */
  readonly backgroundLimitMs?: number;
  /** Between two runs of loop C. Default a week. */
  readonly deepEveryMs?: number;
  /** Longest run of loop C. Default 10 minutes. */
  readonly deepLimitMs?: number;
  /** Training goes on in pieces of this, with what was reached kept after each. Default 15 s. */
  readonly sliceMs?: number;
  /** Gradients that the Fisher information of a task is taken of. Default 100. */
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
