import { RuvLLMError } from '../../../core/errors.ts';

export interface AdamOptions {
  readonly learningRate: number;
  /** Matrices are pulled towards zero by this share of the rate each step, apart from the gradient. */
  readonly weightDecay: number;
  /** Which parameters are of a matrix; gains, biases and ζ, ν have no reason to be small. */
  readonly isDecayed: (index: number) => boolean;
  /** Longer gradients are shortened to this. */
  readonly maxNorm: number;
}

export interface Adam {
  /** Changes `params`; throws before it changes anything when the gradient is not finite. */
  step(params: Float32Array, gradient: Float32Array): void;
  /** Forgets the momentum of entries that were set to zero from outside. */
  forget(isGone: (index: number) => boolean): void;
}

/** Adam (Kingma and Ba, algorithm 1) with decoupled decay. */
export function createAdam(size: number, options: AdamOptions): Adam {
  const [beta1, beta2, epsilon] = [0.9, 0.999, 1e-8];
  const first = new Float32Array(size);
  const second = new Float32Array(size);
  const decayed = Uint8Array.from({ length: size }, (_, i) => +options.isDecayed(i));
  let numSteps = 0;
  return {
    step(params, gradient) {
      let squared = 0;
      for (let i = 0; i < size; i++) squared += gradient[i]! * gradient[i]!;
      if (!Number.isFinite(squared)) {
        const at = gradient.findIndex((value) => !Number.isFinite(value));
        throw new RuvLLMError('invalid_option', `the gradient of parameter ${at} of ${size} is ${gradient[at]}: nothing was changed`, { data: { parameter: at } }); // prettier-ignore
      }
      numSteps += 1;
      const norm = Math.sqrt(squared);
      const shorten = norm > options.maxNorm ? options.maxNorm / norm : 1;
      const rate = (options.learningRate * Math.sqrt(1 - beta2 ** numSteps)) / (1 - beta1 ** numSteps);
      const keep = 1 - options.learningRate * options.weightDecay;
      for (let i = 0; i < size; i++) {
        const g = gradient[i]! * shorten;
        first[i] = beta1 * first[i]! + (1 - beta1) * g;
        second[i] = beta2 * second[i]! + (1 - beta2) * g * g;
        params[i] = (decayed[i] === 1 ? keep : 1) * params[i]! - (rate * first[i]!) / (Math.sqrt(second[i]!) + epsilon);
      }
    },
    forget(isGone) {
      for (let i = 0; i < size; i++) {
        if (!isGone(i)) continue;
        first[i] = 0;
        second[i] = 0;
      }
    },
  };
}
