import { EDGE_DIM, NUM_EDGE_SCALARS, NUM_HEADS, NUM_RELATIONS, QUERY_DIM } from './parameters.ts';

/** Arrays that hold a list. */
export interface ListRoom {
  readonly scales: Float64Array;
  readonly base: Float64Array;
  readonly hops: Float64Array;
  readonly relationMass: Float64Array;
  readonly edgeScalars: Float64Array;
  readonly projected: Float64Array;
}

/** Buffers of one pass over a list, reused by the next pass to avoid garbage. */
export interface AttentionRoom {
  readonly edges: Float64Array;
  readonly edgeWorth: Float64Array;
  readonly logShares: Float64Array;
  readonly shares: Float64Array;
  readonly weights: Float64Array;
  readonly scores: Float64Array;
  readonly nearness: Float64Array;
  readonly normed: Float64Array;
}

export interface RankRoom extends ListRoom, AttentionRoom {
  /** Candidates that fit. */
  readonly capacity: number;
}

export function createListRoom(capacity: number): ListRoom {
  return {
    scales: new Float64Array(capacity),
    base: new Float64Array(capacity),
    hops: new Float64Array(capacity),
    relationMass: new Float64Array(capacity * NUM_RELATIONS),
    edgeScalars: new Float64Array(capacity * NUM_EDGE_SCALARS),
    projected: new Float64Array(QUERY_DIM),
  };
}

export function createAttentionRoom(capacity: number, dim: number): AttentionRoom {
  return {
    edges: new Float64Array(capacity * EDGE_DIM),
    edgeWorth: new Float64Array(NUM_HEADS * EDGE_DIM),
    logShares: new Float64Array(capacity * NUM_HEADS),
    shares: new Float64Array(capacity * NUM_HEADS),
    weights: new Float64Array(capacity),
    scores: new Float64Array(capacity),
    nearness: new Float64Array(capacity),
    normed: new Float64Array(dim),
  };
}

const createRankRoom = (capacity: number, dim: number): RankRoom => ({
  capacity,
  ...createListRoom(capacity),
  ...createAttentionRoom(capacity, dim),
});

/** Reuses the buffers while they are large enough; one pass at a time. */
export function createRoomKeeper(dim: number): (count: number) => RankRoom {
  let room = createRankRoom(32, dim);
  return (count) => {
    if (count > room.capacity) room = createRankRoom(2 ** Math.ceil(Math.log2(count)), dim);
    return room;
  };
}
