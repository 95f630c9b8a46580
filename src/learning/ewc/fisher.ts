import { RuvLLMError } from '../../core/errors.ts';

/** A moving mean of squared gradients, one for each parameter. */
export interface FisherEstimate {
  readonly numSamples: number;
  /** Adds one sample's gradient. */
  observe(gradient: Float32Array): void;
  /** A copy of the estimate, corrected for its start at zero and nowhere below the floor. */
  values(): Float32Array;
}

export interface FisherOptions {
  /** Weight of the samples before the newest one; 0.999 remembers about a thousand. */
  readonly decay: number;
  /** Least value: a parameter that no sample needed would otherwise drift without bound. */
  readonly floor: number;
}

export function createFisherEstimate(numParameters: number, { decay, floor }: FisherOptions): FisherEstimate {
  const sums = new Float32Array(numParameters);
  let numSamples = 0;
  return {
    get numSamples() {
      return numSamples;
    },
    observe(gradient) {
      checkVector('a gradient', gradient, numParameters);
      numSamples++;
      for (let i = 0; i < numParameters; i++) {
        sums[i] = decay * sums[i]! + (1 - decay) * gradient[i]! * gradient[i]!;
      }
    },
    values() {
      const share = numSamples === 0 ? 1 : 1 - decay ** numSamples;
      return sums.map((sum) => Math.max(floor, sum / share));
    },
  };
}

/** Throws unless the vector has this length and only finite values: a wrong one must never be skipped silently. */
export function checkVector(label: string, vector: Float32Array, length: number): void {
  if (vector.length !== length) {
    throw new RuvLLMError('invalid_option', `${label} has ${vector.length} values instead of ${length}`, {
      data: { length: vector.length, expected: length },
    });
  }
  const index = vector.findIndex((value) => !Number.isFinite(value));
  if (index === -1) return;
  throw new RuvLLMError('bad_gradient', `${label}: value ${index} of ${length} is ${vector[index]}`, {
    data: { index },
  });
}
