import { activationRounding, roundRow } from '../activation-rounding.ts';
import type { Arena, ExpertRouting, ExpertsOp, ExpertStack } from '../contract.ts';
import { checkExperts } from '../experts-op.ts';
import { activations } from './elementwise.ts';
import { dequantizeRow } from './matmul.ts';

/** The smallest normal half: as in llama.cpp, a smaller sum of weights does not divide. */
const MIN_SUM = 2 ** -14;

export function experts(arena: Arena, op: ExpertsOp): void {
  const { numExperts, dim, feedForwardDim } = checkExperts(op);
  const { choiceBias, expertScales = null } = op.routing;
  const bias = choiceBias === null ? null : arena.f32(choiceBias, numExperts);
  const scales = expertScales === null ? null : arena.f32(expertScales, numExperts);
  for (let t = 0; t < op.numTokens; t++) {
    const x = arena.f32(op.x + t * dim * 4, dim);
    const out = arena.f32(op.out + t * dim * 4, dim);
    const sums = new Float64Array(dim);
    const logits = arena.f32(op.logits + t * numExperts * 4, numExperts);
    for (const { expert, weight } of chooseExperts(logits, op.routing, bias)) {
      const gate = multiply(arena, op.gate, numExperts, expert, x);
      const up = multiply(arena, op.up, numExperts, expert, x);
      const hidden = new Float32Array(feedForwardDim);
      for (let i = 0; i < feedForwardDim; i++) hidden[i] = activations[op.activation](gate[i]!, up[i]!);
      const result = multiply(arena, op.down, numExperts, expert, hidden);
      const scaled = weight * (scales?.[expert] ?? 1);
      for (let i = 0; i < dim; i++) sums[i]! += scaled * result[i]!;
    }
    for (let i = 0; i < dim; i++) out[i]! += sums[i]!;
  }
}

/** The chosen experts of a token, best first, with their weights. */
export function chooseExperts(
  logits: Float32Array,
  routing: ExpertRouting,
  bias: Float32Array | null,
): { expert: number; weight: number }[] {
  const { numExperts, numUsed, scores, isNormalized, scale } = routing;
  const score = scores === 'sigmoid' ? Float64Array.from(logits, (x) => 1 / (1 + Math.exp(-x))) : softmax(logits);
  // Without a bias or sums of groups, the order of softmax scores is that of the logits, which packs compute with fewer roundings.
  const isPlain = scores === 'chosen-softmax' || (scores === 'softmax' && bias === null && routing.numGroups === 1);
  const rank = Array.from(isPlain ? logits : score, (value, e) => value + (bias?.[e] ?? 0));
  const open = openExperts(rank, routing);
  const chosen: number[] = [];
  while (chosen.length < numUsed) {
    let best = -1;
    for (let e = 0; e < numExperts; e++) if (open[e] && (best < 0 || rank[e]! > rank[best]!)) best = e;
    open[best] = false;
    chosen.push(best);
  }
  const picked = chosen.map((e) => (scores === 'chosen-softmax' ? logits[e]! : score[e]!));
  const weights = scores === 'chosen-softmax' ? Array.from(softmax(picked)) : picked;
  const sum = isNormalized ? Math.max(MIN_SUM, weights.reduce((total, weight) => total + weight, 0)) : 1; // prettier-ignore
  return chosen.map((expert, i) => ({ expert, weight: (weights[i]! / sum) * scale }));
}

/** Which experts belong to the best groups, by the sum of the two best ranks of each. */
function openExperts(rank: readonly number[], { numExperts, numGroups, numUsedGroups }: ExpertRouting): boolean[] {
  if (numGroups === 1) return rank.map(() => true);
  const size = numExperts / numGroups;
  const groups = Array.from({ length: numGroups }, (_, group) => {
    const [first, second = 0] = rank.slice(group * size, (group + 1) * size).sort((a, b) => b - a);
    return { group, score: first! + second };
  });
  const best = groups.sort((a, b) => b.score - a.score || a.group - b.group).slice(0, numUsedGroups);
  return rank.map((_, e) => best.some(({ group }) => group === Math.floor(e / size)));
}

function softmax(values: ArrayLike<number>): Float64Array {
  const max = Math.max(...Array.from(values));
  const powers = Float64Array.from(values, (value) => Math.exp(value - max));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function multiply(
  arena: Arena,
  { weight, bias }: ExpertStack,
  numExperts: number,
  expert: number,
  x: Float32Array,
): Float32Array {
  const numRows = weight.numRows / numExperts;
  const row = roundRow(x, activationRounding[weight.type]);
  const weights = new Float32Array(weight.numCols);
  const biases = bias === null ? null : arena.f32(bias + expert * numRows * 4, numRows);
  return Float32Array.from({ length: numRows }, (_, r) => {
    dequantizeRow(arena, weight, expert * numRows + r, weights);
    let sum = biases?.[r] ?? 0;
    for (let i = 0; i < weights.length; i++) sum += weights[i]! * row[i]!;
    return sum;
  });
}
