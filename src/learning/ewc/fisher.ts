import { RuvLLMError } from '../../core/errors.ts';

/** A moving mean of squared gradients, one for each parameter. */
export interface FisherEstimate {
  readonly numSamples: number;
  /** Adds one sample's gradient. */
  observe(gradient: Float32Array): void;
  /** The estimate without the bias of its start at zero, nowhere below the floor; a copy. */
  values(): Float32Array;
  state(): FisherState;
}

export interface FisherState {
  readonly sums: Float32Array;
  readonly numSamples: number;
}

/** Weight of what was seen before a sample: about a thousand samples are remembered. */
export const FISHER_DECAY = 0.999;
/** A parameter that no sample needed is still held a little, or it would drift without end. */
export const FISHER_FLOOR = 1e-6;

export function createFisherEstimate(
  numParameters: number,
  { decay = FISHER_DECAY, floor = FISHER_FLOOR, state }: { decay?: number; floor?: number; state?: FisherState } = {},
): FisherEstimate {
  const sums = state?.sums.slice() ?? new Float32Array(numParameters);
  let numSamples = state?.numSamples ?? 0;
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
    state: () => ({ sums: sums.slice(), numSamples }),
  };
}

/** Throws unless the vector has this length and only finite values: a wrong one must never be skipped silently. */
export function checkVector(what: string, vector: Float32Array, length: number): void {
  if (vector.length !== length) {
    throw new RuvLLMError('invalid_option', `${what} of ${vector.length} values, there are ${length} parameters`, {
      data: { length: vector.length, numParameters: length },
    });
  }
  const bad = vector.findIndex((value) => !Number.isFinite(value));
  if (bad === -1) return;
  throw new RuvLLMError('bad_gradient', `${what}: value ${bad} of ${length} is ${vector[bad]}`, {
    data: { index: bad },
  });
}
