import { createRandom, type Random } from '../../core/random.ts';

export interface Clustering {
  /** k × dim, each of length 1. */
  readonly centroids: readonly Float32Array[];
  /** Centroid of each vector. */
  readonly labels: Int32Array;
  readonly numIterations: number;
}

export interface ClusteringOptions {
  readonly k: number;
  readonly random: Random;
  /** Default 100. */
  readonly maxIterations?: number;
  /** Stops when no centroid moves further than this. Default 1e-3. */
  readonly tolerance?: number;
}

/** Clusters unit vectors by cosine: k-means++ seeds, then Lloyd's rounds. A centroid that loses all its vectors is dropped. */
export function clusterVectors(vectors: readonly Float32Array[], options: ClusteringOptions): Clustering {
  const { random, maxIterations = 100, tolerance = 1e-3 } = options;
  let centroids = seedCentroids(vectors, Math.min(options.k, vectors.length), random);
  const labels = new Int32Array(vectors.length);
  let numIterations = 0;
  while (numIterations < maxIterations) {
    numIterations++;
    assign(vectors, centroids, labels);
    const moved = recompute(vectors, labels, centroids.length);
    const shift = Math.max(...centroids.map((centroid, i) => distance(centroid, moved[i])));
    centroids = centroids.map((centroid, i) => moved[i] ?? centroid);
    if (shift < tolerance) break;
  }
  assign(vectors, centroids, labels);
  const used = centroids.map((_, i) => labels.includes(i));
  const places = new Int32Array(centroids.length);
  let numUsed = 0;
  for (const [i, isUsed] of used.entries()) places[i] = isUsed ? numUsed++ : -1;
  return {
    centroids: centroids.filter((_, i) => used[i]),
    labels: labels.map((label) => places[label]!),
    numIterations,
  };
}

/** Merges clusters with centroids nearer than `similarity`: more seeds than groups split groups. */
export function joinClusters(
  { centroids, labels }: Pick<Clustering, 'centroids' | 'labels'>,
  vectors: readonly Float32Array[],
  similarity: number,
): Pick<Clustering, 'centroids' | 'labels'> {
  const joined = labels.slice();
  let middles = [...centroids];
  for (let a = 0; a < middles.length; a++) {
    const b = middles.findIndex((other, at) => at > a && dot(middles[a]!, other) > similarity);
    if (b < 0) continue;
    for (const [i, label] of joined.entries()) joined[i] = label === b ? a : label > b ? label - 1 : label;
    middles = middles.toSpliced(b, 1);
    const sum = recompute(vectors, joined, middles.length);
    middles[a] = sum[a] ?? middles[a]!;
    a = -1; // the merged cluster may be near others now
  }
  return { centroids: middles, labels: joined };
}

export interface ClusterPlan {
  readonly k: number;
  readonly seed: number;
  /** Cosine from which clusters are merged. */
  readonly joinAt: number;
}

/** Plain data in and out, for another thread. */
export type ClusterWork = (
  vectors: readonly Float32Array[],
  plan: ClusterPlan,
) => Promise<Pick<Clustering, 'centroids' | 'labels'>>;

/** Clusters unit vectors into at most `k` groups. */
export function clusterWhole(
  vectors: readonly Float32Array[],
  { k, seed, joinAt }: ClusterPlan,
): Pick<Clustering, 'centroids' | 'labels'> {
  return joinClusters(clusterVectors(vectors, { k, random: createRandom(seed) }), vectors, joinAt);
}

export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/** A zero vector stays as it is. */
export function normalized(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector));
  return length === 0 ? vector : vector.map((value) => value / length);
}

const distance = (a: Float32Array, b: Float32Array | null | undefined): number =>
  b == null ? 0 : Math.sqrt(Math.max(0, 2 - 2 * dot(a, b)));

/** D² seeding: the chance of a seed is its squared distance to the nearest one so far. */
function seedCentroids(vectors: readonly Float32Array[], k: number, random: Random): Float32Array[] {
  if (k === 0) return [];
  const seeds = [vectors[Math.floor(random.next() * vectors.length)]!];
  const nearest = vectors.map((vector) => distance(vector, seeds[0]) ** 2);
  while (seeds.length < k) {
    const total = nearest.reduce((sum, value) => sum + value, 0);
    if (total < 1e-12) break; // fewer different vectors than seeds
    let at = random.next() * total;
    let chosen = nearest.findIndex((value) => (at -= value) < 0);
    if (chosen < 0) chosen = nearest.lastIndexOf(Math.max(...nearest));
    const seed = vectors[chosen]!;
    seeds.push(seed);
    for (const [i, vector] of vectors.entries()) nearest[i] = Math.min(nearest[i]!, distance(vector, seed) ** 2);
  }
  return seeds;
}

function assign(vectors: readonly Float32Array[], centroids: readonly Float32Array[], labels: Int32Array): void {
  for (const [i, vector] of vectors.entries()) {
    let best = -Infinity;
    for (const [label, centroid] of centroids.entries()) {
      const similarity = dot(vector, centroid);
      if (similarity <= best) continue;
      best = similarity;
      labels[i] = label;
    }
  }
}

/** Null for empty clusters. */
function recompute(vectors: readonly Float32Array[], labels: Int32Array, k: number): (Float32Array | null)[] {
  const sums: (Float32Array | null)[] = Array.from({ length: k }, () => null);
  for (const [i, vector] of vectors.entries()) {
    const sum = (sums[labels[i]!] ??= new Float32Array(vector.length));
    for (let d = 0; d < vector.length; d++) sum[d]! += vector[d]!;
  }
  return sums.map((sum) => (sum === null ? null : normalized(sum)));
}
