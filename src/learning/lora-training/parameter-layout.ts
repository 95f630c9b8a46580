import type { AdapterTarget, LowRankFactors } from '../../adapters/types.ts';
import { targetShape } from '../../adapters/target-shapes.ts';
import { ADAPTER_TARGETS } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createRandom, drawNormal } from '../../core/random.ts';
import type { DecoderShape } from '../../models/types.ts';

/** Position of the factors of a matrix in a parameter vector. */
export interface LayoutMatrix {
  readonly target: AdapterTarget;
  /** −1 for `output`. */
  readonly layer: number;
  readonly numCols: number;
  readonly numRows: number;
  /** First of f32[rank × numCols]. */
  readonly aStart: number;
  /** First of f32[numRows × rank]. */
  readonly bStart: number;
}

/** All factors of an adapter as one vector, matrix by matrix in the order of an `Adapter`, A before B. */
export interface ParameterLayout {
  readonly rank: number;
  readonly scale: number;
  readonly numParameters: number;
  readonly matrices: readonly LayoutMatrix[];
}

export interface LayoutChoice {
  readonly targets: readonly AdapterTarget[];
  /** Number of last layers. */
  readonly numLayers: number;
  readonly rank: number;
  readonly alpha: number;
}

export function planLayout(shape: DecoderShape, { targets, numLayers, rank, alpha }: LayoutChoice): ParameterLayout {
  const matrices: LayoutMatrix[] = [];
  let next = 0;
  const add = (target: AdapterTarget, layer: number): void => {
    const { numRows, numCols } = targetShape(target, shape, layer);
    matrices.push({ target, layer, numRows, numCols, aStart: next, bStart: next + rank * numCols });
    next += rank * (numCols + numRows);
  };
  const chosen = ADAPTER_TARGETS.filter((target) => targets.includes(target));
  if (chosen.includes('output')) add('output', -1);
  for (let layer = shape.numLayers - numLayers; layer < shape.numLayers; layer++) {
    for (const target of chosen) if (target !== 'output') add(target, layer);
  }
  return { rank, scale: alpha / rank, numParameters: next, matrices };
}

/** Random A and zero B: they add nothing yet, and both have gradients. */
export function initialParameters(layout: ParameterLayout, seed: number): Float32Array {
  const parameters = new Float32Array(layout.numParameters);
  const random = createRandom(seed);
  for (const { aStart, bStart, numCols } of layout.matrices) {
    const deviation = 1 / Math.sqrt(numCols);
    for (let i = aStart; i < bStart; i++) parameters[i] = drawNormal(random) * deviation;
  }
  return parameters;
}

/** Copies of the factors in the form of an adapter. */
export function toFactors(layout: ParameterLayout, parameters: Float32Array): LowRankFactors[] {
  checkLength('parameters', layout, parameters);
  const { rank, scale } = layout;
  return layout.matrices.map(({ target, layer, numCols, numRows, aStart, bStart }) => ({
    target,
    layer,
    numCols,
    numRows,
    rank,
    scale,
    a: parameters.slice(aStart, bStart),
    b: parameters.slice(bStart, bStart + numRows * rank),
  }));
}

export function checkLength(what: string, { numParameters }: ParameterLayout, vector: Float32Array): void {
  if (vector.length === numParameters) return;
  throw new RuvLLMError('invalid_option', `${what} of ${vector.length} values, the layout has ${numParameters}`, {
    data: { length: vector.length, numParameters },
  });
}
