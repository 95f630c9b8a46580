import { CONTEXT_SCALE, EDGE_SCALE, softplus, type Attention } from './attend.ts';
import { EDGE_DIM, groupOf, NUM_HEADS, NUM_RELATIONS, QUERY_DIM, RELATION_DIM } from './parameters.ts';
import type { RankList } from './rank-list.ts';
import { readOutBackward } from './readout.ts';

/** Adds the gradient of the parameters to `gradient`, given that of the scores. */
export function attendBackward(
  parameters: Float32Array,
  list: RankList,
  attention: Attention,
  slopes: Float64Array,
  gradient: Float32Array,
): void {
  const { count, base, hops, relationMass, projected } = list;
  const { edges, edgeWorth, logShares, shares, readout } = attention;
  const bySimilarity = Math.exp(groupOf(parameters, 'similarity')[0]!);
  const byContext = CONTEXT_SCALE * groupOf(parameters, 'context')[0]!;
  groupOf(gradient, 'similarity')[0]! += bySimilarity * dot(slopes, base);
  groupOf(gradient, 'context')[0]! += CONTEXT_SCALE * dot(slopes, readout.nearness);
  const ofWeights = readOutBackward(list, readout, slopes.map((slope) => slope * byContext)); // prettier-ignore

  const sharpness = groupOf(parameters, 'sharpness');
  const decay = groupOf(parameters, 'decay');
  const output = groupOf(parameters, 'output');
  const byAttention = groupOf(parameters, 'attention');
  const ofEdges = new Float64Array(count * EDGE_DIM);
  const ofWorth = new Float64Array(NUM_HEADS * EDGE_DIM);
  for (let h = 0; h < NUM_HEADS; h++) {
    const own = shares.subarray(h * count, (h + 1) * count);
    const ofShares = dot(ofWeights, own);
    groupOf(gradient, 'output')[h]! += ofShares;
    groupOf(gradient, 'attention')[h]! += dot(slopes, logShares.subarray(h * count, (h + 1) * count));
    let ofLogShares = 0;
    for (let i = 0; i < count; i++) ofLogShares += slopes[i]! * byAttention[h]!;
    let ofFactor = 0;
    let ofCost = 0;
    for (let i = 0; i < count; i++) {
      // Gradient of the softmax, then of its logarithm.
      const slope =
        own[i]! * output[h]! * (ofWeights[i]! - ofShares) + slopes[i]! * byAttention[h]! - own[i]! * ofLogShares;
      ofFactor += slope * base[i]!;
      ofCost -= slope * hops[i]!;
      for (let f = 0; f < EDGE_DIM; f++) {
        ofEdges[i * EDGE_DIM + f]! += slope * edgeWorth[h * EDGE_DIM + f]!;
        ofWorth[h * EDGE_DIM + f]! += slope * edges[i * EDGE_DIM + f]!;
      }
    }
    groupOf(gradient, 'sharpness')[h]! += ofFactor * Math.exp(sharpness[h]!);
    // The slope of softplus is 1 - exp(-softplus).
    groupOf(gradient, 'decay')[h]! += ofCost * -Math.expm1(-softplus(decay[h]!));
  }
  const relations = groupOf(gradient, 'relations');
  for (let i = 0; i < count; i++) {
    for (let r = 0; r < NUM_RELATIONS; r++) {
      const mass = relationMass[i * NUM_RELATIONS + r]!;
      if (mass === 0) continue;
      for (let f = 0; f < RELATION_DIM; f++) relations[r * RELATION_DIM + f]! += mass * ofEdges[i * EDGE_DIM + f]!;
    }
  }
  const edgeBias = groupOf(gradient, 'edgeBias');
  const edgeQuery = groupOf(gradient, 'edgeQuery');
  for (let h = 0, at = 0; h < NUM_HEADS; h++) {
    for (let f = 0; f < EDGE_DIM; f++) edgeBias[h * EDGE_DIM + f]! += ofWorth[h * EDGE_DIM + f]!;
    for (let r = 0; r < QUERY_DIM; r++) {
      const factor = projected[r]! * EDGE_SCALE;
      for (let f = 0; f < EDGE_DIM; f++, at++) edgeQuery[at]! += factor * ofWorth[h * EDGE_DIM + f]!;
    }
  }
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
