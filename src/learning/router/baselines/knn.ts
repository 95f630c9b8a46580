import type { Estimator } from '../estimator.ts';
import { importanceOf } from '../labels.ts';
import type { PolicyState, RouteExample, RouteInput } from '../types.ts';
import { meanOutcomes } from './constant.ts';

/** Feedback beyond this replaces the oldest. */
const MAX_ROWS = 20_000;

export interface KnnOptions {
  readonly k: number;
  /** How many neighbours the mean counts for. */
  readonly prior: number;
}

/** In four sums: one alone waits for itself at every step. */
function dot(a: Float32Array, b: Float32Array): number {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  let i = 0;
  for (; i + 4 <= a.length; i += 4) {
    s0 += a[i]! * b[i]!;
    s1 += a[i + 1]! * b[i + 1]!;
    s2 += a[i + 2]! * b[i + 2]!;
    s3 += a[i + 3]! * b[i + 3]!;
  }
  for (; i < a.length; i++) s0 += a[i]! * b[i]!;
  return s0 + s1 + s2 + s3;
}

/** Mean outcome of the nearest examples by cosine, weighted by similarity and importance. */
export function createKnn(
  rows: Float32Array[],
  outcomes: Float32Array[],
  importances: Float32Array[],
  means: Float32Array,
  options: KnnOptions,
): Estimator {
  let next = 0;
  const nearest = ({ embedding }: RouteInput): { index: number; similarity: number }[] => {
    const top: { index: number; similarity: number }[] = [];
    for (let index = 0; index < rows.length; index++) {
      const similarity = dot(rows[index]!, embedding);
      if (top.length === options.k && similarity <= top[top.length - 1]!.similarity) continue;
      let at = top.length;
      while (at > 0 && top[at - 1]!.similarity < similarity) at -= 1;
      top.splice(at, 0, { index, similarity });
      if (top.length > options.k) top.pop();
    }
    return top;
  };
  return {
    name: 'k-NN',
    estimate(input) {
      const neighbours = nearest(input);
      const qualities = Float64Array.from(means, (mean, i) => {
        let [sum, total] = [options.prior * mean, options.prior];
        for (const { index, similarity } of neighbours) {
          const outcome = outcomes[index]![i]!;
          if (Number.isNaN(outcome)) continue;
          const weight = Math.max(0, similarity) * importances[index]![i]!;
          sum += weight * outcome;
          total += weight;
        }
        return sum / total;
      });
      return {
        qualities,
        confidence: NaN,
        why: { kind: 'best', detail: `${neighbours.length} neighbours`, neighbours },
      };
    },
    update({ input, candidate, quality, propensity }) {
      const outcome = new Float32Array(means.length).fill(NaN);
      outcome[candidate] = quality;
      const at = rows.length < MAX_ROWS ? rows.length : next++ % MAX_ROWS;
      rows[at] = input.embedding;
      outcomes[at] = outcome;
      importances[at] = new Float32Array(means.length).fill(importanceOf(propensity));
    },
    save: () => ({
      kind: 'k-NN',
      numbers: { k: options.k, prior: options.prior, width: rows[0]?.length ?? 0 },
      arrays: { means, rows: flat(rows), outcomes: flat(outcomes), importances: flat(importances) },
    }),
  };
}

function flat(rows: readonly Float32Array[]): Float32Array {
  const width = rows[0]?.length ?? 0;
  const all = new Float32Array(rows.length * width);
  rows.forEach((row, i) => all.set(row, i * width));
  return all;
}

export function trainKnn(
  examples: readonly RouteExample[],
  numCandidates: number,
  options: KnnOptions = { k: 40, prior: 2 },
): Estimator {
  return createKnn(
    examples.map(({ input }) => input.embedding),
    examples.map(({ outcomes }) => outcomes),
    examples.map(({ outcomes, propensities }) => outcomes.map((_, i) => importanceOf(propensities?.[i] ?? 1))),
    meanOutcomes(examples, numCandidates),
    options,
  );
}

export function loadKnn({ numbers, arrays }: PolicyState): Estimator {
  const means = arrays['means'] as Float32Array;
  const width = numbers['width']!;
  const split = (name: string, size: number): Float32Array[] => {
    const all = arrays[name] as Float32Array;
    return Array.from({ length: size === 0 ? 0 : all.length / size }, (_, i) => all.slice(i * size, (i + 1) * size));
  };
  return createKnn(split('rows', width), split('outcomes', means.length), split('importances', means.length), means, {
    k: numbers['k']!,
    prior: numbers['prior']!,
  });
}
