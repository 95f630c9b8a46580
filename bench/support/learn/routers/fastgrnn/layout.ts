import { RuvLLMError } from '../../../../../src/core/errors.ts';
import { createRandom } from '../../../../../src/core/random.ts';
import { MAX_CANDIDATES, NUM_FEATURES } from '../../../../../src/learning/router/types.ts';

/** Parameters are f32; the tests differentiate in f64, where a difference of two losses still has digits. */
export type Floats = Float32Array | Float64Array;

export interface NetworkShape {
  readonly numInputs: number;
  readonly numHidden: number;
  readonly rank: number;
  readonly numCandidates: number;
}

/** Offsets of the blocks in the flat vector. */
export interface NetworkLayout extends NetworkShape {
  readonly normGain: number; // [numInputs]
  readonly normBias: number; // [numInputs]
  readonly wz: number; // [numHidden × numInputs]
  readonly wh: number; // [numHidden × numInputs]
  readonly az: number; // [numHidden × rank]
  readonly bz: number; // [rank × numHidden]
  readonly ah: number; // [numHidden × rank]
  readonly bh: number; // [rank × numHidden]
  readonly biasZ: number; // [numHidden]
  readonly biasH: number; // [numHidden]
  readonly zeta: number; // [1]
  readonly nu: number; // [1]
  /** Rows of `heads`: candidates, confidence, then a quality for each candidate. */
  readonly heads: number; // [numOutputs × numHidden]
  readonly headBias: number; // [numOutputs]
  readonly numOutputs: number;
  readonly confidenceAt: number;
  readonly qualityAt: number;
  readonly numParams: number;
}

export const DEFAULT_SHAPE = { numInputs: NUM_FEATURES, numHidden: 64, rank: 8 } as const;

export function layoutOf(shape: NetworkShape): NetworkLayout {
  const { numInputs, numHidden, rank, numCandidates } = shape;
  if (!(numCandidates >= 1 && numCandidates <= MAX_CANDIDATES && numHidden <= 1024 && numInputs <= 4096 && rank <= numHidden))
    throw new RuvLLMError('invalid_option', `no network of ${numInputs} inputs, ${numHidden} hidden, rank ${rank}, ${numCandidates} candidates`); // prettier-ignore
  let end = 0;
  const take = (size: number): number => (end += size) - size;
  const numOutputs = 2 * numCandidates + 1;
  const offsets = {
    normGain: take(numInputs),
    normBias: take(numInputs),
    wz: take(numHidden * numInputs),
    wh: take(numHidden * numInputs),
    az: take(numHidden * rank),
    bz: take(rank * numHidden),
    ah: take(numHidden * rank),
    bh: take(rank * numHidden),
    biasZ: take(numHidden),
    biasH: take(numHidden),
    zeta: take(1),
    nu: take(1),
    heads: take(numOutputs * numHidden),
    headBias: take(numOutputs),
  };
  return {
    ...shape,
    ...offsets,
    numOutputs,
    confidenceAt: numCandidates,
    qualityAt: numCandidates + 1,
    numParams: end,
  };
}

/** Start of training: small random matrices, ζ = 1, ν = 0.5, heads at zero so that no candidate has an advantage. */
export function initialParams<T extends Floats>(layout: NetworkLayout, seed: number, params: T): T {
  const random = createRandom(seed);
  const fill = (at: number, size: number, scale: number): void => {
    for (let i = 0; i < size; i++) params[at + i] = (2 * random.next() - 1) * scale;
  };
  const { numInputs, numHidden, rank } = layout;
  params.fill(1, layout.normGain, layout.normGain + numInputs);
  for (const at of [layout.wz, layout.wh]) fill(at, numHidden * numInputs, Math.sqrt(3 / numInputs));
  for (const at of [layout.az, layout.bz, layout.ah, layout.bh]) fill(at, numHidden * rank, Math.sqrt(1 / numHidden));
  params[layout.zeta] = 1;
  params[layout.nu] = 0.5;
  return params;
}
