import type { AdapterTarget, LowRankFactors } from '../../adapters/types.ts';
import { targetShape } from '../../adapters/target-shapes.ts';
import { ADAPTER_TARGETS } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createRandom, type Random } from '../../core/random.ts';
import type { DecoderShape } from '../../models/types.ts';

/** Where the factors of one matrix lie in a parameter vector. */
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
  /** The last so many layers. */
  readonly numLayers: number;
  readonly rank: number;
  readonly alpha: number;
}

export function planLayout(shape: DecoderShape, { targets, numLayers, rank, alpha }: LayoutChoice): ParameterLayout {
  const matrices: LayoutMatrix[] = [];
  let next = 0;
  const add = (target: AdapterTarget, layer: number): void => {
    const { numRows, numCols } = targetShape(target, shape);
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

/** A random and B zero: nothing is added to the model yet, and both can move. */
export function initialParameters(layout: ParameterLayout, seed: number): Float32Array {
  const parameters = new Float32Array(layout.numParameters);
  const random = createRandom(seed);
  for (const { aStart, bStart, numCols } of layout.matrices) {
    const deviation = 1 / Math.sqrt(numCols);
    for (let i = aStart; i < bStart; i++) parameters[i] = normal(random) * deviation;
  }
  return parameters;
}

/** Copies of the factors, as an adapter holds them. */
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

/** The vector of an adapter that has exactly the matrices of the layout; typed errors say where it differs. */
export function fromFactors(layout: ParameterLayout, factors: readonly LowRankFactors[]): Float32Array {
  const parameters = new Float32Array(layout.numParameters);
  const wrong = (message: string): never => {
    throw new RuvLLMError('invalid_option', `the adapter does not fit the layout: ${message}`);
  };
  if (factors.length !== layout.matrices.length) {
    wrong(`${factors.length} matrices instead of ${layout.matrices.length}`);
  }
  for (const [i, matrix] of layout.matrices.entries()) {
    const given = factors[i]!;
    const describe = (of: typeof matrix, rank: number, scale: number): string =>
      `${of.target} of layer ${of.layer}, ${of.numRows} x ${of.numCols}, rank ${rank}, scale ${scale}`;
    const [is, shall] = [
      describe({ ...matrix, ...given }, given.rank, given.scale),
      describe(matrix, layout.rank, layout.scale),
    ];
    if (is !== shall) wrong(`${is} instead of ${shall}`);
    if (given.a.length !== layout.rank * matrix.numCols || given.b.length !== layout.rank * matrix.numRows) {
      wrong(`${matrix.target} of layer ${matrix.layer} has factors of ${given.a.length} and ${given.b.length} values`);
    }
    parameters.set(given.a, matrix.aStart);
    parameters.set(given.b, matrix.bStart);
  }
  return parameters;
}

export function checkLength(what: string, { numParameters }: ParameterLayout, vector: Float32Array): void {
  if (vector.length === numParameters) return;
  throw new RuvLLMError('invalid_option', `${what} of ${vector.length} values, the layout has ${numParameters}`, {
    data: { length: vector.length, numParameters },
  });
}

/** Box-Muller; 1 − u is never 0. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
