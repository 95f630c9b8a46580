import type { Estimator } from '../estimator.ts';
import { importanceOf } from '../labels.ts';
import type { PolicyState, RouteExample, RouteInput } from '../types.ts';
import { meanOutcomes } from './constant.ts';

/** Feedback beyond this replaces the oldest. */
const MAX_ROWS = 20_000;

export interface KnnOptions {
  readonly k: number;
  /** Weight of the mean, in neighbours. */
  readonly prior: number;
}

/** Rows per pass: each number of the query is read once for all of them, and the sums are independent. */
const AT_ONCE = 4;
const wholeGroups = (count: number): number => Math.ceil(count / AT_ONCE) * AT_ONCE;

/** Unit vectors in one array: thousands of small arrays take several times as long to scan. */
function createTable(rows: readonly Float32Array[]) {
  let width = rows[0]?.length ?? 0;
  let table = new Float32Array(wholeGroups(rows.length) * width);
  rows.forEach((row, i) => table.set(row, i * width));
  let count = rows.length;
  let similarities = new Float64Array(wholeGroups(count));
  return {
    get count() {
      return count;
    },
    get width() {
      return width;
    },
    set(at: number, row: Float32Array): void {
      if (count === 0) width = row.length;
      if ((at + 1) * width > table.length) {
        const larger = new Float32Array(wholeGroups(Math.max(64, 2 * (at + 1))) * width);
        larger.set(table);
        table = larger;
        similarities = new Float64Array(larger.length / width);
      }
      table.set(row, at * width);
      count = Math.max(count, at + 1);
    },
    /** By row; overwritten by the next call. */
    similaritiesTo(vector: Float32Array): Float64Array {
      for (let row = 0; row < count; row += AT_ONCE) {
        const a0 = row * width;
        const [a1, a2, a3] = [a0 + width, a0 + 2 * width, a0 + 3 * width];
        let [s0, s1, s2, s3] = [0, 0, 0, 0];
        for (let i = 0; i < width; i++) {
          const x = vector[i]!;
          s0 += table[a0 + i]! * x;
          s1 += table[a1 + i]! * x;
          s2 += table[a2 + i]! * x;
          s3 += table[a3 + i]! * x;
        }
        similarities[row] = s0;
        similarities[row + 1] = s1;
        similarities[row + 2] = s2;
        similarities[row + 3] = s3;
      }
      return similarities;
    },
    values: (): Float32Array => table.slice(0, count * width),
  };
}

/** The sentence vector, or else the embedding of the terms. */
const vectorOf = ({ vector, embedding }: RouteInput): Float32Array => vector ?? embedding;

/** Mean outcome of the nearest examples by cosine, weighted by similarity and importance. */
export function createKnn(
  vectors: readonly Float32Array[],
  outcomes: Float32Array[],
  importances: Float32Array[],
  means: Float32Array,
  options: KnnOptions,
): Estimator {
  let next = 0;
  const rows = createTable(vectors);
  const nearest = (input: RouteInput): { index: number; similarity: number }[] => {
    const top: { index: number; similarity: number }[] = [];
    const similarities = rows.similaritiesTo(vectorOf(input));
    for (let index = 0; index < rows.count; index++) {
      const similarity = similarities[index]!;
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
      const at = rows.count < MAX_ROWS ? rows.count : next++ % MAX_ROWS;
      rows.set(at, vectorOf(input));
      outcomes[at] = outcome;
      importances[at] = new Float32Array(means.length).fill(importanceOf(propensity));
    },
    save: () => ({
      kind: 'k-NN',
      numbers: { k: options.k, prior: options.prior, width: rows.width },
      arrays: { means, rows: rows.values(), outcomes: flat(outcomes), importances: flat(importances) },
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
    examples.map(({ input }) => vectorOf(input)),
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
