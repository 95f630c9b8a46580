import { createRandom } from '../../../src/core/random.ts';

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Ranks from 1; equal values share their mean rank. */
export function ranksOf(values: readonly number[]): number[] {
  const order = values.map((value, i) => ({ value, i })).sort((a, b) => a.value - b.value);
  const ranks = Array.from({ length: values.length }, () => 0);
  for (let from = 0; from < order.length;) {
    let to = from;
    while (to + 1 < order.length && order[to + 1]!.value === order[from]!.value) to++;
    for (let k = from; k <= to; k++) ranks[order[k]!.i] = (from + to) / 2 + 1;
    from = to + 1;
  }
  return ranks;
}

function pearson(a: readonly number[], b: readonly number[]): number {
  const [ma, mb] = [meanOf(a), meanOf(b)];
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    ab += (a[i]! - ma) * (b[i]! - mb);
    aa += (a[i]! - ma) ** 2;
    bb += (b[i]! - mb) ** 2;
  }
  return aa === 0 || bb === 0 ? 0 : ab / Math.sqrt(aa * bb);
}

export const spearman = (a: readonly number[], b: readonly number[]): number => pearson(ranksOf(a), ranksOf(b));

/** Spearman correlation of a and b that c does not explain. */
export function partialSpearman(a: readonly number[], b: readonly number[], c: readonly number[]): number {
  const [ab, ac, bc] = [spearman(a, b), spearman(a, c), spearman(b, c)];
  return (ab - ac * bc) / Math.sqrt(Math.max(1e-12, (1 - ac ** 2) * (1 - bc ** 2)));
}

/** Probability that a right answer scores higher than a wrong one. */
export function auc(scores: readonly number[], labels: readonly number[]): number {
  const ranks = ranksOf(scores);
  const numRight = labels.filter((label) => label > 0.5).length;
  const numWrong = labels.length - numRight;
  const sum = ranks.reduce((total, rank, i) => total + (labels[i]! > 0.5 ? rank : 0), 0);
  return numRight === 0 || numWrong === 0 ? 0.5 : (sum - (numRight * (numRight + 1)) / 2) / (numRight * numWrong);
}

/** Expected calibration error over ten equally filled bins. */
export function calibrationError(scores: readonly number[], labels: readonly number[], numBins = 10): number {
  const order = scores.map((score, i) => ({ score, label: labels[i]! })).sort((a, b) => a.score - b.score);
  let error = 0;
  for (let bin = 0; bin < numBins; bin++) {
    const part = order.slice(Math.floor((bin * order.length) / numBins), Math.floor(((bin + 1) * order.length) / numBins)); // prettier-ignore
    if (part.length === 0) continue;
    const gap = meanOf(part.map(({ score }) => score)) - meanOf(part.map(({ label }) => label));
    error += (part.length / order.length) * Math.abs(gap);
  }
  return error;
}

/** 95 % interval of a statistic over resampled groups: rows of one question stay together. */
export function groupedInterval(
  groups: readonly string[],
  statistic: (rows: readonly number[]) => number,
  numResamples = 1000,
): { readonly low: number; readonly high: number } {
  const random = createRandom(1);
  const rowsOf = new Map<string, number[]>();
  groups.forEach((group, row) => rowsOf.set(group, [...(rowsOf.get(group) ?? []), row]));
  const all = [...rowsOf.values()];
  const values = Array.from({ length: numResamples }, () =>
    statistic(all.flatMap(() => all[Math.floor(random.next() * all.length)]!)),
  ).sort((a, b) => a - b);
  return { low: values[Math.floor(numResamples * 0.025)]!, high: values[Math.ceil(numResamples * 0.975) - 1]! };
}

/** The values in another order. */
export function shuffled<T>(values: readonly T[], seed: number): T[] {
  const random = createRandom(seed);
  const copy = [...values];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [copy[i], copy[j]] = [copy[j]!, copy[i]!];
  }
  return copy;
}

/** Weights of a logistic regression with a small penalty, by gradient descent; the last one is the bias. */
export function fitLogistic(rows: readonly (readonly number[])[], labels: readonly number[], penalty = 0.01): number[] {
  const size = rows[0]!.length;
  const weights = Array.from({ length: size + 1 }, () => 0);
  for (let step = 0; step < 20_000; step++) {
    const gradient = Array.from({ length: size + 1 }, () => 0);
    rows.forEach((row, i) => {
      const z = weights[size]! + row.reduce((sum, value, k) => sum + value * weights[k]!, 0);
      const error = 1 / (1 + Math.exp(-z)) - labels[i]!;
      row.forEach((value, k) => (gradient[k]! += error * value));
      gradient[size]! += error;
    });
    for (let k = 0; k <= size; k++) weights[k]! -= 0.5 * (gradient[k]! / rows.length + (k < size ? penalty * weights[k]! : 0)); // prettier-ignore
  }
  return weights;
}
