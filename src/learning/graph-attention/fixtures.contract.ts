import { createRandom, type Random } from '../../core/random.ts';
import type { CandidateEdge } from '../../memory/search/rerank.ts';
import { NUM_PARAMETERS } from './parameters.ts';
import type { RankCandidate, RankExample } from './types.ts';

export const DIM = 12;
const DAY_MS = 86_400_000;

export function gaussian(random: Random): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random.next();
  return sum;
}

export function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array): number => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

const vectorOf = (random: Random, dim: number): Float32Array =>
  Float32Array.from({ length: dim }, () => gaussian(random));

/** A list in which nothing can be read from anything; every second candidate has edges, one has no vector. */
export function randomExample(seed: number, count = 9, dim = DIM): RankExample {
  const random = createRandom(seed);
  const query = vectorOf(random, dim);
  const relations = ['cites', 'same-topic', 'nobody-knows'];
  const candidates = Array.from({ length: count }, (_, i): RankCandidate => {
    const vector = i === 4 ? null : vectorOf(random, dim);
    const edges = Array.from({ length: i % 2 === 0 ? 0 : 2 }, (__, n): CandidateEdge => ({
      other: (i + 1 + n) % count,
      relation: relations[(i + n) % relations.length]!,
      weight: 0.5 + random.next(),
      confidence: random.next(),
      ageMs: random.next() * 60 * DAY_MS,
    }));
    const similarity = vector === null ? null : cosine(query, vector);
    return { vector, similarity, score: similarity ?? 0.3, hops: i % 3, edges };
  });
  return { query, candidates, used: candidates.map((_, i) => i === 1 || i === 4 || i === 6), group: `g${seed}` };
}

/** Parameters at which nothing is 0 or alike. */
export function randomParameters(seed: number): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length: NUM_PARAMETERS }, () => 0.4 * gaussian(random));
}

/**
 * Used records are connected by `same-topic` edges (if these are true) but hardly nearer than the others; `cites` edges are noise.
 */
export function linkedExample(seed: number, areEdgesTrue = true, count = 24): RankExample {
  const random = createRandom(seed);
  const query = vectorOf(random, DIM);
  const used = Array.from({ length: count }, (_, i) => i % 4 === 0);
  const lists: CandidateEdge[][] = used.map(() => []);
  const link = (from: number, to: number, relation: string): void => {
    if (from === to) return;
    const rest = { relation, weight: 1, confidence: 0.8, ageMs: random.next() * 30 * DAY_MS };
    lists[from]!.push({ other: to, ...rest });
    lists[to]!.push({ other: from, ...rest });
  };
  const any = (): number => Math.floor(random.next() * count);
  for (let i = 0; i < count; i++) {
    const alike = Math.floor(random.next() * (count / 4)) * 4;
    if (used[i]) link(areEdgesTrue ? i : any(), areEdgesTrue ? alike : any(), 'same-topic');
    link(i, any(), 'cites');
  }
  const candidates = used.map((isUsed, i): RankCandidate => {
    const noise = vectorOf(random, DIM);
    const near = isUsed ? 0.5 : 0.3;
    const vector = noise.map((value, d) => value + near * query[d]!);
    const similarity = cosine(query, vector);
    return { vector, similarity, score: similarity, hops: 0, edges: lists[i]! };
  });
  return { query, candidates, used, group: `g${seed}` };
}

export const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);
