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
import { readOut, type Readout } from './readout.ts';

/** Everything a pass over a list computed; the way back needs it. */
export interface Attention {
  /** [count][EDGE_DIM] */
  readonly edges: Float64Array;
  /** [head][EDGE_DIM]: what an edge is worth to this query. */
  readonly edgeWorth: Float64Array;
  /** [head][count], log of the share; of one that has no vector, what it would be. */
  readonly logShares: Float64Array;
  /** [head][count], adding up to 1; 0 where there is no vector. */
  readonly shares: Float64Array;
  readonly readout: Readout;
  /** [count] */
  readonly scores: Float64Array;
}

export const softplus = (x: number): number => (x > 30 ? x : Math.log1p(Math.exp(x)));
/** Nearness is -1 to 1; without a factor its parameter would have to grow for long. */
export const CONTEXT_SCALE = 10;
/** q·e is divided by the root of its dimensions, as q·k is. */
export const EDGE_SCALE = 1 / Math.sqrt(QUERY_DIM);

/** Scores of all candidates of a list. */
export function attend(parameters: Float32Array, list: RankList): Attention {
  const { count, base, hops, scales } = list;
  const edges = edgeVectors(groupOf(parameters, 'relations'), list);
  const edgeWorth = worthOfEdges(parameters, list.projected);
  const sharpness = groupOf(parameters, 'sharpness');
  const decay = groupOf(parameters, 'decay');
  const output = groupOf(parameters, 'output');
  const byAttention = groupOf(parameters, 'attention');
  const logShares = new Float64Array(NUM_HEADS * count);
  const shares = new Float64Array(NUM_HEADS * count);
  const weights = new Float64Array(count);
  const scores = new Float64Array(count);
  for (let h = 0; h < NUM_HEADS; h++) {
    const logits = logShares.subarray(h * count, (h + 1) * count);
    const own = shares.subarray(h * count, (h + 1) * count);
    const factor = Math.exp(sharpness[h]!);
    const cost = softplus(decay[h]!);
    for (let i = 0; i < count; i++) {
      let worth = 0;
      for (let f = 0; f < EDGE_DIM; f++) worth += edges[i * EDGE_DIM + f]! * edgeWorth[h * EDGE_DIM + f]!;
      // The share is what is multiplied by exp(-decay × hops): multiplying the logit would bring a negative one nearer.
      logits[i] = factor * base[i]! + worth - cost * hops[i]!;
    }
    const total = logSumExp(logits, scales);
    for (let i = 0; i < count; i++) {
      logits[i]! -= total;
      own[i] = scales[i] === 0 ? 0 : Math.exp(logits[i]!);
      weights[i]! += output[h]! * own[i]!;
      scores[i]! += byAttention[h]! * logits[i]!;
    }
  }
  const readout = readOut(list, weights);
  const bySimilarity = Math.exp(groupOf(parameters, 'similarity')[0]!);
  const byContext = CONTEXT_SCALE * groupOf(parameters, 'context')[0]!;
  for (let i = 0; i < count; i++) scores[i]! += bySimilarity * base[i]! + byContext * readout.nearness[i]!;
  return { edges, edgeWorth, logShares, shares, readout, scores };
}

/** Over those that can be attended to; 0 where none can. */
function logSumExp(logits: Float64Array, scales: Float64Array): number {
  let max = -Infinity;
  for (let i = 0; i < logits.length; i++) if (scales[i] !== 0 && logits[i]! > max) max = logits[i]!;
  if (max === -Infinity) return 0;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) if (scales[i] !== 0) sum += Math.exp(logits[i]! - max);
  return max + Math.log(sum);
}

function edgeVectors(relations: Float32Array, { count, relationMass, edgeScalars }: RankList): Float64Array {
  const edges = new Float64Array(count * EDGE_DIM);
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
  return edges;
}

function worthOfEdges(parameters: Float32Array, projected: Float64Array): Float64Array {
  const worth = Float64Array.from(groupOf(parameters, 'edgeBias'));
  const byQuery = groupOf(parameters, 'edgeQuery');
  for (let h = 0, at = 0; h < NUM_HEADS; h++) {
    for (let r = 0; r < QUERY_DIM; r++) {
      const factor = projected[r]! * EDGE_SCALE;
      for (let f = 0; f < EDGE_DIM; f++, at++) worth[h * EDGE_DIM + f]! += factor * byQuery[at]!;
    }
  }
  return worth;
}
