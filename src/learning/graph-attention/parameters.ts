import { createRandom, type Random } from '../../core/random.ts';
import type { EdgeRelation } from '../../memory/schemas/node.ts';

export const NUM_HEADS = 4;
/** Relations with parameters of their own; fixed, because stored re-rankers have a row for each. */
export const RANKED_RELATIONS: readonly EdgeRelation[] = ['cites', 'follows', 'same-topic', 'agent-step', 'derived', 'contains', 'session']; // prettier-ignore
/** The last row is for any other relation. */
export const NUM_RELATIONS = RANKED_RELATIONS.length + 1;
export const RELATION_DIM = 16;
/** Recency, confidence, weight, logarithm of the age. */
export const NUM_EDGE_SCALARS = 4;
export const EDGE_DIM = RELATION_DIM + NUM_EDGE_SCALARS;
/** Directions that a query is projected on for its edge weights; shared by all heads. */
export const QUERY_DIM = 32;

/** Offset and size of each group of parameters. */
export const LAYOUT = layOut({
  /** [relation][RELATION_DIM] */
  relations: NUM_RELATIONS * RELATION_DIM,
  /** [head][EDGE_DIM]: weight of an edge for any query. */
  edgeBias: NUM_HEADS * EDGE_DIM,
  /** [head][QUERY_DIM][EDGE_DIM]: weight of an edge for queries along a direction. */
  edgeQuery: NUM_HEADS * QUERY_DIM * EDGE_DIM,
  /** [head], logarithm: weight of similarity in the attention. */
  sharpness: NUM_HEADS,
  /** [head], through softplus: cost of a hop, never below 0. */
  decay: NUM_HEADS,
  /** [head]: share of the attended vectors that is added to the query. */
  output: NUM_HEADS,
  /** [head]: weight of its attention in the ranking. */
  attention: NUM_HEADS,
  /** Logarithm: weight of similarity in the ranking. */
  similarity: 1,
  /** Weight of similarity to the query in its context. */
  context: 1,
});
export type ParameterGroup = keyof typeof LAYOUT;
export const NUM_PARAMETERS = Object.values(LAYOUT).reduce((sum, { length }) => sum + length, 0);

/** Heads start with different widths, else all would learn the same: about the 10 to 1 nearest of 64. */
const SHARPNESS = [5, 10, 20, 40];
/** The hop factor of the search, exp(-0.22) = 0.8, as softplus gives it. */
const DECAY = Math.log(Math.expm1(0.22));
const SPREAD = 0.3;
/** Factor of similarity in an initial score: with less a softmax hardly tells candidates apart. */
const SIMILARITY_SCALE = 10;

/** Parameters that rank exactly like similarity. */
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
  // edgeQuery, attention and context are 0: only similarity counts.
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

/** Irwin–Hall of twelve: close to normal, and equal on every platform, unlike Math.log and Math.cos. */
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
