import type { LowRankFactors } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import { createRandom, drawNormal } from '../../core/random.ts';
import { INSTANT_LEARNING_RATE } from './instant-learning-rate.ts';
import { checkSample, logitGradient } from './token-gradient.ts';
import type { MicroLora, MicroLoraState, UpdateReport } from './types.ts';

export interface MicroLoraConfig {
  readonly hiddenDim: number;
  readonly vocabSize: number;
  /** 1 or 2; default 2. */
  readonly rank?: number;
  /** The addition is multiplied by alpha / rank; default 16. */
  readonly alpha?: number;
  /** Longest mean gradient of an update; default 1. */
  readonly maxGradientNorm?: number;
  /** Largest ‖scale · B · A‖, whatever the feedback; default 1. */
  readonly maxNorm?: number;
  /** Seed of A; default 1. */
  readonly seed?: number;
}

/** Beyond it a correction harms other answers as much as it helps; older corrections shrink instead. */
const MAX_NORM = 1;
/** Qualities this close to 0.5 teach nothing. */
const NEUTRAL = 0.1;
const MAX_DIM = 2 ** 20;

function resolveConfig(config: MicroLoraConfig): Readonly<Required<MicroLoraConfig>> {
  return resolveOptions<Required<MicroLoraConfig>>('createMicroLora', config, {
    hiddenDim: integerOption(0, 1, MAX_DIM),
    vocabSize: integerOption(0, 1, MAX_DIM),
    rank: integerOption(2, 1, 2),
    alpha: numberOption(16, 1e-6, 1e6),
    maxGradientNorm: numberOption(1, 1e-9, 1e9),
    maxNorm: numberOption(MAX_NORM, 0, 1e9),
    seed: integerOption(1, 0, 2 ** 32),
  });
}

export function createMicroLora(given: MicroLoraConfig, from?: MicroLoraState): MicroLora {
  const config = resolveConfig(given);
  const { hiddenDim, vocabSize, rank, maxGradientNorm, maxNorm } = config;
  const scale = config.alpha / rank;
  const bStart = rank * hiddenDim;
  const numParameters = bStart + vocabSize * rank;
  const parameters = new Float32Array(numParameters);
  const gradient = new Float32Array(numParameters);
  /** Rows of B with a gradient: an answer touches few rows of a large vocabulary. */
  const touched = new Int32Array(vocabSize);
  const isTouched = new Uint8Array(vocabSize);
  let numTouched = 0;
  let [version, numPendingTokens, norm] = [0, 0, 0];
  const u = new Float64Array(rank);
  const w = new Float64Array(rank);

  if (from === undefined) {
    const random = createRandom(config.seed);
    for (let i = 0; i < bStart; i++) parameters[i] = drawNormal(random) / Math.sqrt(hiddenDim);
  } else {
    if (from.parameters.length !== numParameters || from.parameters.some((value) => !Number.isFinite(value))) {
      throw new RuvLLMError(
        'invalid_option',
        `a state of ${from.parameters.length} values, not ${numParameters} finite ones`,
      );
    }
    parameters.set(from.parameters);
    version = from.version;
    norm = normOf();
  }

  /** u = scale · A · hidden, both rows in one pass: this dominates an update of a wide model. */
  function project(hidden: Float32Array): void {
    const second = (rank - 1) * hiddenDim;
    let sum0 = 0;
    let sum1 = 0;
    for (let i = 0; i < hiddenDim; i++) {
      const value = hidden[i]!;
      sum0 += parameters[i]! * value;
      sum1 += parameters[second + i]! * value;
    }
    u[0] = sum0 * scale;
    u[rank - 1] = sum1 * scale;
  }

  /** After `project`. */
  function delta(id: number): number {
    let sum = 0;
    for (let r = 0; r < rank; r++) sum += parameters[bStart + id * rank + r]! * u[r]!;
    return sum;
  }

  /** The gradient of A: w · hiddenᵀ, zero while B is. */
  function addToA(hidden: Float32Array): void {
    const second = (rank - 1) * hiddenDim;
    const factor0 = w[0]! * scale;
    const factor1 = rank === 1 ? 0 : w[1]! * scale;
    if (factor0 === 0 && factor1 === 0) return;
    for (let i = 0; i < hiddenDim; i++) {
      const value = hidden[i]!;
      gradient[i] = gradient[i]! + factor0 * value;
      gradient[second + i] = gradient[second + i]! + factor1 * value;
    }
  }

  /** ‖scale · B · A‖ by the rank × rank products BᵀB and AAᵀ. */
  function normOf(): number {
    const last = rank - 1;
    let a00 = 0;
    let a01 = 0;
    let a11 = 0;
    let b00 = 0;
    let b01 = 0;
    let b11 = 0;
    for (let i = 0; i < hiddenDim; i++) {
      const first = parameters[i]!;
      const second = parameters[last * hiddenDim + i]!;
      a00 += first * first;
      a01 += first * second;
      a11 += second * second;
    }
    for (let i = bStart; i < numParameters; i += rank) {
      const first = parameters[i]!;
      const second = parameters[i + last]!;
      b00 += first * first;
      b01 += first * second;
      b11 += second * second;
    }
    const sum = rank === 1 ? a00 * b00 : a00 * b00 + 2 * a01 * b01 + a11 * b11;
    return scale * Math.sqrt(Math.max(0, sum));
  }

  function clear(): void {
    gradient.fill(0, 0, bStart);
    for (let i = 0; i < numTouched; i++) {
      const id = touched[i]!;
      isTouched[id] = 0;
      gradient.fill(0, bStart + id * rank, bStart + (id + 1) * rank);
    }
    numTouched = 0;
    numPendingTokens = 0;
  }

  /** One step along the mean gradient, over A and the touched rows of B. */
  function move(learningRate: number): UpdateReport {
    const numTokens = numPendingTokens;
    let squares = 0;
    for (let i = 0; i < bStart; i++) squares += gradient[i]! * gradient[i]!;
    for (let row = 0; row < numTouched; row++) {
      const at = bStart + touched[row]! * rank;
      for (let i = at; i < at + rank; i++) squares += gradient[i]! * gradient[i]!;
    }
    const gradientNorm = Math.sqrt(squares);
    if (!Number.isFinite(gradientNorm)) {
      clear();
      throw new RuvLLMError('bad_gradient', `the gradient of ${numTokens} tokens has the norm ${gradientNorm}`);
    }
    if (gradientNorm > 0 && learningRate > 0) {
      const step = learningRate * Math.min(1, maxGradientNorm / gradientNorm);
      for (let i = 0; i < bStart; i++) parameters[i]! -= step * gradient[i]!;
      for (let row = 0; row < numTouched; row++) {
        const at = bStart + touched[row]! * rank;
        for (let i = at; i < at + rank; i++) parameters[i]! -= step * gradient[i]!;
      }
      norm = normOf();
      if (norm > maxNorm) {
        const factor = maxNorm / norm;
        for (let i = bStart; i < numParameters; i++) parameters[i]! *= factor;
        norm = maxNorm;
      }
      version++;
    }
    clear();
    return { version, numTokens, gradientNorm, norm };
  }

  /** Averages the collected gradients in place. */
  function average(): void {
    const share = 1 / numPendingTokens;
    for (let i = 0; i < bStart; i++) gradient[i]! *= share;
    for (let row = 0; row < numTouched; row++) {
      for (let r = 0; r < rank; r++) gradient[bStart + touched[row]! * rank + r]! *= share;
    }
  }

  function checkRate(learningRate: number): void {
    if (learningRate >= 0 && learningRate <= 1) return;
    throw new RuvLLMError('invalid_option', `a learning rate of ${learningRate}: from 0 to 1`);
  }

  return {
    adapt(samples, { quality }) {
      if (!(quality >= 0 && quality <= 1)) {
        throw new RuvLLMError('invalid_option', `a quality of ${quality}: from 0 to 1`, {
          data: { option: 'quality' },
        });
      }
      for (const sample of samples) checkSample(sample, config);
      const skipped = samples.length === 0 ? 'no tokens' : Math.abs(quality - 0.5) > NEUTRAL ? null : 'neutral';
      if (skipped !== null) return { isApplied: false, numTokens: 0, skipped };
      const strength = Math.abs(2 * quality - 1);
      for (const sample of samples) {
        project(sample.hidden);
        const { ids, slopes } = logitGradient(sample, quality < 0.5, delta);
        w.fill(0);
        for (let i = 0; i < ids.length; i++) {
          const id = ids[i]!;
          if (isTouched[id] === 0) {
            isTouched[id] = 1;
            touched[numTouched++] = id;
          }
          const slope = strength * slopes[i]!;
          const at = bStart + id * rank;
          for (let r = 0; r < rank; r++) {
            gradient[at + r]! += slope * u[r]!;
            w[r]! += slope * parameters[at + r]!;
          }
        }
        addToA(sample.hidden);
      }
      numPendingTokens += samples.length;
      return { isApplied: true, numTokens: samples.length, skipped: null };
    },
    applyUpdates(learningRate = INSTANT_LEARNING_RATE) {
      checkRate(learningRate);
      if (numPendingTokens === 0) return { version, numTokens: 0, gradientNorm: 0, norm };
      average();
      return move(learningRate);
    },
    state: () => ({ parameters: parameters.slice(), version }),
    factors: () => microFactors(config, parameters),
  };
}

/** The factors of parameters that a `MicroLora` of this config has. */
export function microFactors(
  { hiddenDim, vocabSize, rank, alpha }: Required<Pick<MicroLoraConfig, 'hiddenDim' | 'vocabSize' | 'rank' | 'alpha'>>,
  parameters: Float32Array,
): readonly LowRankFactors[] {
  const [a, b] = [parameters.slice(0, rank * hiddenDim), parameters.slice(rank * hiddenDim)];
  return [{ target: 'output', layer: -1, numCols: hiddenDim, numRows: vocabSize, rank, scale: alpha / rank, a, b }];
}
