import { createRandom, type Random } from '../../core/random.ts';
import { EDGE_RELATIONS } from '../../memory/schemas/node.ts';

export const NUM_HEADS = 4;
/** Relations there are, and one for any other. */
export const NUM_RELATIONS = EDGE_RELATIONS.length + 1;
export const RELATION_DIM = 16;
/** Recency, confidence, weight, logarithm of the age. */
export const NUM_EDGE_SCALARS = 4;
export const EDGE_DIM = RELATION_DIM + NUM_EDGE_SCALARS;
/** Directions along which a query is looked at for the edges; all heads share them. */
export const QUERY_DIM = 32;

/** Where each group of parameters begins, and how many there are. */
export const LAYOUT = layOut({
  /** [relation][RELATION_DIM] */
  relations: NUM_RELATIONS * RELATION_DIM,
  /** [head][EDGE_DIM]: what an edge is worth to any query. */
  edgeBias: NUM_HEADS * EDGE_DIM,
  /** [head][QUERY_DIM][EDGE_DIM]: what it is worth to queries of a direction. */
  edgeQuery: NUM_HEADS * QUERY_DIM * EDGE_DIM,
  /** [head], logarithm: what similarity counts in the attention. */
  sharpness: NUM_HEADS,
  /** [head], through softplus: what a hop costs; never less than nothing. */
  decay: NUM_HEADS,
  /** [head]: how much of what it attends to is added to the query. */
  output: NUM_HEADS,
  /** [head]: what its attention counts in the ranking. */
  attention: NUM_HEADS,
  /** Logarithm: what similarity counts in the ranking. */
  similarity: 1,
  /** What similarity to the query in its context counts in the ranking. */
  context: 1,
});
export type ParameterGroup = keyof typeof LAYOUT;
export const NUM_PARAMETERS = Object.values(LAYOUT).reduce((sum, { length }) => sum + length, 0);

/** Heads begin with different widths of view, else all would learn the same: the 10 to 1 nearest of 64, about. */
const SHARPNESS = [5, 10, 20, 40];
/** The hop factor of the search, exp(-0.22) = 0.8, as softplus gives it. */
const DECAY = Math.log(Math.expm1(0.22));
const SPREAD = 0.3;
/** So many times its similarity is a candidate's first score: a softmax of less sees hardly a difference. */
const SIMILARITY_SCALE = 10;

/** Parameters that rank exactly as similarity does. */
export function initialParameters(seed: number): Float32Array {
  const random = createRandom(seed);
  const parameters = new Float32Array(NUM_PARAMETERS);
  const group = (name: ParameterGroup): Float32Array => groupOf(parameters, name);
  group('relations').forEach((_, i, all) => (all[i] = SPREAD * gaussian(random)));
  group('edgeBias').forEach((_, i, all) => (all[i] = SPREAD * gaussian(random)));
  group('sharpness').set(SHARPNESS.map(Math.log));
  group('decay').fill(DECAY);
  group('output').fill(1 / NUM_HEADS);
  group('similarity').fill(Math.log(SIMILARITY_SCALE));
  // edgeQuery, attention and context are 0: nothing but similarity counts.
  return parameters;
}

export function groupOf(parameters: Float32Array, name: ParameterGroup): Float32Array {
  const { offset, length } = LAYOUT[name];
  return parameters.subarray(offset, offset + length);
}

/** Signs of QUERY_DIM directions in `dim` dimensions; the same for the same seed. */
export function queryDirections(seed: number, dim: number): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length: QUERY_DIM * dim }, () => (random.next() < 0.5 ? -1 : 1));
}

/** Irwin-Hall of twelve: near enough to a normal, and the same on every platform, which Math.log and Math.cos are not. */
function gaussian(random: Random): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random.next();
  return sum;
}

function layOut<T extends Record<string, number>>(
  lengths: T,
): { readonly [K in keyof T]: { offset: number; length: number } } {
  let offset = 0;
  const entries = Object.entries(lengths).map(([name, length]) => {
    const place = { offset, length };
    offset += length;
    return [name, place];
  });
  return Object.fromEntries(entries) as never;
}
