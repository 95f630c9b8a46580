import { RuvLLMError } from '../../core/errors.ts';
import { NUM_EDGE_SCALARS, NUM_RELATIONS, QUERY_DIM, RANKED_RELATIONS } from './parameters.ts';
import { createListRoom, type ListRoom } from './rank-room.ts';
import type { RankQuery } from './types.ts';

/** More than any search returns. */
const MAX_CANDIDATES = 4096;
const MAX_EDGES = 1 << 20;
const MAX_HOPS = 64;
const DAY_MS = 86_400_000;
/** Age after which an edge's recency is 1/e. */
const RECENCY_MS = 30 * DAY_MS;
/** Decay of an edge's weight with the distance of its other end from the nearest candidate. */
const NEARNESS = 10;
const RELATION_INDEX = new Map<string, number>(RANKED_RELATIONS.map((relation, i) => [relation, i]));

/** A query and its candidates as input of the attention, independent of parameters. Arrays may be longer than `count`. */
export interface RankList {
  readonly count: number;
  readonly query: Float32Array;
  readonly queryScale: number;
  readonly vectors: readonly (Float32Array | null)[];
  /** [count]: 1 / length; 0 without a vector, which cannot be attended to. */
  readonly scales: Float64Array;
  /** [count]: similarity, or the score without one. */
  readonly base: Float64Array;
  readonly hops: Float64Array;
  /** [count][NUM_RELATIONS]: edges of each relation, weighted by the nearness of the other end. */
  readonly relationMass: Float64Array;
  /** [count][NUM_EDGE_SCALARS]: sums over the same edges. */
  readonly edgeScalars: Float64Array;
  /** [QUERY_DIM]: the query projected on the shared directions. */
  readonly projected: Float64Array;
}

const refuse = (message: string): never => {
  throw new RuvLLMError('invalid_option', `re-ranking: ${message}`);
};

/** 1 / length; 0 for a zero vector. */
function inverseLength(vector: Float32Array): number {
  // Four independent sums avoid waiting for each addition.
  let [a, b, c, d] = [0, 0, 0, 0];
  let i = 0;
  for (; i + 3 < vector.length; i += 4) {
    a += vector[i]! * vector[i]!;
    b += vector[i + 1]! * vector[i + 1]!;
    c += vector[i + 2]! * vector[i + 2]!;
    d += vector[i + 3]! * vector[i + 3]!;
  }
  for (; i < vector.length; i++) a += vector[i]! * vector[i]!;
  const squares = a + b + c + d;
  return squares > 0 && Number.isFinite(squares) ? 1 / Math.sqrt(squares) : 0;
}

/** Checks and converts a list; errors name the position. Without `room` it allocates its own arrays. */
export function readRankList(
  { query, candidates }: RankQuery,
  directions: Float32Array,
  roomFor: (count: number) => ListRoom = createListRoom,
): RankList {
  const dim = directions.length / QUERY_DIM;
  const count = candidates.length;
  if (query.length !== dim) refuse(`a query of ${query.length} values for vectors of ${dim}`);
  if (count > MAX_CANDIDATES) refuse(`${count} candidates are more than ${MAX_CANDIDATES}`);
  const queryScale = inverseLength(query);
  if (queryScale === 0) refuse('the query has no direction');
  const room = roomFor(count);
  const { base, scales, hops, relationMass, edgeScalars, projected } = room;
  for (let i = 0; i < count; i++) {
    const { vector, similarity, score, hops: steps } = candidates[i]!;
    if (vector !== null && vector.length !== dim) refuse(`candidate ${i} has ${vector.length} values, not ${dim}`);
    if (!(steps >= 0 && steps <= MAX_HOPS)) refuse(`candidate ${i} is ${steps} hops away`);
    scales[i] = vector === null ? 0 : inverseLength(vector);
    base[i] = scales[i] === 0 ? score : (similarity ?? score);
    if (!Number.isFinite(base[i])) refuse(`candidate ${i} has the similarity ${base[i]}`);
    hops[i] = steps;
  }
  project(query, queryScale, directions, projected);
  sumEdges(candidates, room);
  const vectors = candidates.map(({ vector }) => vector);
  return { count, query, queryScale, vectors, scales, base, hops, projected, relationMass, edgeScalars };
}

function project(query: Float32Array, scale: number, directions: Float32Array, projected: Float64Array): void {
  const dim = query.length;
  // Four directions in one pass over the query.
  for (let r = 0; r < QUERY_DIM; r += 4) {
    let [a, b, c, d] = [0, 0, 0, 0];
    const at = r * dim;
    for (let x = 0; x < dim; x++) {
      const value = query[x]!;
      a += directions[at + x]! * value;
      b += directions[at + dim + x]! * value;
      c += directions[at + 2 * dim + x]! * value;
      d += directions[at + 3 * dim + x]! * value;
    }
    projected[r] = a * scale;
    projected[r + 1] = b * scale;
    projected[r + 2] = c * scale;
    projected[r + 3] = d * scale;
  }
}

function sumEdges(candidates: RankQuery['candidates'], { base, relationMass, edgeScalars }: ListRoom): void {
  const count = candidates.length;
  relationMass.fill(0, 0, count * NUM_RELATIONS);
  edgeScalars.fill(0, 0, count * NUM_EDGE_SCALARS);
  let best = -Infinity;
  for (let i = 0; i < count; i++) best = Math.max(best, base[i]!);
  let numEdges = 0;
  for (let i = 0; i < count; i++) {
    const { edges } = candidates[i]!;
    numEdges += edges.length;
    if (numEdges > MAX_EDGES) refuse(`more than ${MAX_EDGES} edges`);
    for (const { other, relation, weight, confidence, ageMs } of edges) {
      if (!(other >= 0 && other < count && other !== i)) refuse(`candidate ${i} has an edge to ${other} of ${count}`);
      if (!(weight >= 0 && weight < Infinity && confidence >= 0 && confidence <= 1 && ageMs >= 0 && ageMs < Infinity)) {
        refuse(`an edge of candidate ${i} has weight ${weight}, confidence ${confidence}, age ${ageMs} ms`);
      }
      const nearness = Math.exp(NEARNESS * (base[other]! - best));
      relationMass[i * NUM_RELATIONS + (RELATION_INDEX.get(relation) ?? NUM_RELATIONS - 1)]! += nearness;
      const at = i * NUM_EDGE_SCALARS;
      edgeScalars[at]! += nearness * Math.exp(-ageMs / RECENCY_MS);
      edgeScalars[at + 1]! += nearness * confidence;
      edgeScalars[at + 2]! += nearness * weight;
      edgeScalars[at + 3]! += (nearness * Math.log1p(ageMs / 1000)) / 10;
    }
  }
}
