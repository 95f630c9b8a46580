import { RuvLLMError } from '../../core/errors.ts';
import type { RerankRequest } from '../../memory/search/rerank.ts';
import { attend } from './attend.ts';
import { initialParameters, NUM_PARAMETERS, queryDirections } from './parameters.ts';
import { readRankList } from './rank-list.ts';
import { createRoomKeeper } from './rank-room.ts';
import type { RankQuery, RerankerState } from './types.ts';

/** Scores retrieved candidates. */
export interface Reranker {
  readonly state: RerankerState;
  /** A score for each candidate; higher is better. */
  score(query: RankQuery): Float64Array;
}

const MAX_DIM = 1 << 15;
/** Largest parameter; trained ones are far below. */
const MAX_PARAMETER = 100;

/** Ranks exactly like similarity. */
export function untrainedState(dim: number, seed = 1): RerankerState {
  return checkRerankerState({
    format: 'graph-attention',
    version: 1,
    dim,
    seed,
    parameters: initialParameters(seed),
  });
}

/** Throws `invalid_option` for incomplete weights, `unsupported` for another format. */
export function checkRerankerState(state: RerankerState): RerankerState {
  const { format, version, dim, seed, parameters } = state;
  if (format !== 'graph-attention' || version !== 1) {
    throw new RuvLLMError(
      'unsupported',
      `re-ranking of format ${format}, version ${version}; known: graph-attention, 1`,
    );
  }
  const refuse = (message: string): never => {
    throw new RuvLLMError('invalid_option', `re-ranking: ${message}`);
  };
  if (!Number.isSafeInteger(dim) || dim < 2 || dim > MAX_DIM) refuse(`vectors of ${dim} values, not 2 to ${MAX_DIM}`);
  if (!Number.isSafeInteger(seed) || seed < 0) refuse(`the seed ${seed}`);
  if (!(parameters instanceof Float32Array) || parameters.length !== NUM_PARAMETERS) {
    refuse(`${parameters?.length} parameters, not ${NUM_PARAMETERS}`);
  }
  const bad = parameters.findIndex((value) => !(Math.abs(value) <= MAX_PARAMETER));
  if (bad !== -1) refuse(`parameter ${bad} is ${parameters[bad]}`);
  return state;
}

export function createReranker(state: RerankerState): Reranker {
  const { dim, seed, parameters } = checkRerankerState(state);
  const directions = queryDirections(seed, dim);
  const roomFor = createRoomKeeper(dim);
  return {
    state,
    score(query) {
      const list = readRankList(query, directions, roomFor);
      return attend(parameters, list, roomFor(list.count)).scores.slice(0, list.count);
    },
  };
}

/** Converts the candidates of a memory search. */
export function toRankQuery({ query, space, candidates }: RerankRequest): RankQuery {
  return {
    query,
    candidates: candidates.map(({ record, similarity, score, hops, edges }) => ({
      vector: record.space === space ? record.vector : null,
      similarity,
      score,
      hops,
      edges,
    })),
  };
}
