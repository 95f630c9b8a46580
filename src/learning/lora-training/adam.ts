/** Adam's moments; both vectors are as long as the parameters. */
export interface AdamState {
  readonly first: Float32Array;
  readonly second: Float32Array;
  numSteps: number;
}

export interface AdamRates {
  readonly learningRate: number;
}

// Kingma & Ba, §2.
const BETA_1 = 0.9;
const BETA_2 = 0.999;
const EPSILON = 1e-8;

export function createAdamState(numParameters: number): AdamState {
  return { first: new Float32Array(numParameters), second: new Float32Array(numParameters), numSteps: 0 };
}

/** One step against the gradient. */
export function stepAdam(
  parameters: Float32Array,
  gradient: Float32Array,
  state: AdamState,
  { learningRate }: AdamRates,
): void {
  const { first, second } = state;
  state.numSteps++;
  const firstShare = 1 - BETA_1 ** state.numSteps;
  const secondShare = 1 - BETA_2 ** state.numSteps;
  for (let i = 0; i < parameters.length; i++) {
    const slope = gradient[i]!;
    first[i] = BETA_1 * first[i]! + (1 - BETA_1) * slope;
    second[i] = BETA_2 * second[i]! + (1 - BETA_2) * slope * slope;
    parameters[i]! -= (learningRate * (first[i]! / firstShare)) / (Math.sqrt(second[i]! / secondShare) + EPSILON);
  }
}

/** Clips the vector to `maxNorm`; returns its norm before. */
export function clipNorm(vector: Float32Array, maxNorm: number): number {
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += vector[i]! * vector[i]!;
  const norm = Math.sqrt(squares);
  if (norm > maxNorm) {
    const factor = maxNorm / norm;
    for (let i = 0; i < vector.length; i++) vector[i]! *= factor;
  }
  return norm;
}
