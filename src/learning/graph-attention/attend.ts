import {
  EDGE_DIM,
  groupOf,
  NUM_EDGE_SCALARS,
  NUM_HEADS,
  NUM_RELATIONS,
  QUERY_DIM,
  RELATION_DIM,
} from './parameters.ts';
import type { RankList } from './rank-list.ts';
import { type AttentionRoom, createAttentionRoom } from './rank-room.ts';
import { readOut, type Readout } from './readout.ts';

/** Results of a forward pass, for the backward pass. Its arrays belong to the buffers: the next pass overwrites them. */
export interface Attention {
  /** [count][EDGE_DIM] */
  readonly edges: Float64Array;
  /** [head][EDGE_DIM]: weight of an edge for this query. */
  readonly edgeWorth: Float64Array;
  /** [head][count]: log of the share, also for candidates without a vector. */
  readonly logShares: Float64Array;
  /** [head][count]: sums to 1; 0 without a vector. */
  readonly shares: Float64Array;
  readonly readout: Readout;
  /** [count] */
  readonly scores: Float64Array;
}

export const softplus = (x: number): number => (x > 30 ? x : Math.log1p(Math.exp(x)));
/** Cosines are -1 to 1: without a factor the parameter would grow slowly. */
export const CONTEXT_SCALE = 10;
/** q·e is divided by the root of its dimensions, as q·k is. */
export const EDGE_SCALE = 1 / Math.sqrt(QUERY_DIM);

/** Scores of all candidates of a list. */
export function attend(
  parameters: Float32Array,
  list: RankList,
  room: AttentionRoom = createAttentionRoom(list.count, list.query.length),
): Attention {
  const { count, base, hops, scales } = list;
  const { edges, edgeWorth, logShares, shares, weights, scores } = room;
  sumEdgeVectors(groupOf(parameters, 'relations'), list, edges);
  worthOfEdges(parameters, list.projected, edgeWorth);
  const sharpness = groupOf(parameters, 'sharpness');
  const decay = groupOf(parameters, 'decay');
  const output = groupOf(parameters, 'output');
  const byAttention = groupOf(parameters, 'attention');
  weights.fill(0, 0, count);
  scores.fill(0, 0, count);
  for (let h = 0; h < NUM_HEADS; h++) {
    const at = h * count;
    const factor = Math.exp(sharpness[h]!);
    const cost = softplus(decay[h]!);
    for (let i = 0; i < count; i++) {
      let worth = 0;
      for (let f = 0; f < EDGE_DIM; f++) worth += edges[i * EDGE_DIM + f]! * edgeWorth[h * EDGE_DIM + f]!;
      // exp(-decay × hops) multiplies the share: multiplying a negative logit would raise it.
      logShares[at + i] = factor * base[i]! + worth - cost * hops[i]!;
    }
    const total = logSumExp(logShares, at, scales, count);
    for (let i = 0; i < count; i++) {
      const logShare = logShares[at + i]! - total;
      const share = scales[i] === 0 ? 0 : Math.exp(logShare);
      logShares[at + i] = logShare;
      shares[at + i] = share;
      weights[i]! += output[h]! * share;
      scores[i]! += byAttention[h]! * logShare;
    }
  }
  const readout = readOut(list, room);
  const bySimilarity = Math.exp(groupOf(parameters, 'similarity')[0]!);
  const byContext = CONTEXT_SCALE * groupOf(parameters, 'context')[0]!;
  for (let i = 0; i < count; i++) scores[i]! += bySimilarity * base[i]! + byContext * readout.nearness[i]!;
  return { edges, edgeWorth, logShares, shares, readout, scores };
}

/** Over candidates with a vector; 0 without any. */
function logSumExp(logits: Float64Array, at: number, scales: Float64Array, count: number): number {
  let max = -Infinity;
  for (let i = 0; i < count; i++) if (scales[i] !== 0 && logits[at + i]! > max) max = logits[at + i]!;
  if (max === -Infinity) return 0;
  let sum = 0;
  for (let i = 0; i < count; i++) if (scales[i] !== 0) sum += Math.exp(logits[at + i]! - max);
  return max + Math.log(sum);
}

function sumEdgeVectors(
  relations: Float32Array,
  { count, relationMass, edgeScalars }: RankList,
  edges: Float64Array,
): void {
  edges.fill(0, 0, count * EDGE_DIM);
  for (let i = 0; i < count; i++) {
    for (let r = 0; r < NUM_RELATIONS; r++) {
      const mass = relationMass[i * NUM_RELATIONS + r]!;
      if (mass === 0) continue;
      for (let f = 0; f < RELATION_DIM; f++) edges[i * EDGE_DIM + f]! += mass * relations[r * RELATION_DIM + f]!;
    }
    for (let f = 0; f < NUM_EDGE_SCALARS; f++) {
      edges[i * EDGE_DIM + RELATION_DIM + f] = edgeScalars[i * NUM_EDGE_SCALARS + f]!;
    }
  }
}

function worthOfEdges(parameters: Float32Array, projected: Float64Array, worth: Float64Array): void {
  worth.set(groupOf(parameters, 'edgeBias'));
  const byQuery = groupOf(parameters, 'edgeQuery');
  for (let h = 0, at = 0; h < NUM_HEADS; h++) {
    for (let r = 0; r < QUERY_DIM; r++) {
      const factor = projected[r]! * EDGE_SCALE;
      for (let f = 0; f < EDGE_DIM; f++, at++) worth[h * EDGE_DIM + f]! += factor * byQuery[at]!;
    }
  }
}
