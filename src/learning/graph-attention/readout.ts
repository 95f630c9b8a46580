import type { RankList } from './rank-list.ts';
import type { AttentionRoom } from './rank-room.ts';

/** The query in its context, and the similarity of each candidate to it. */
export interface Readout {
  /** [dim], LayerNorm of query + Σ weight × candidate. */
  readonly normed: Float64Array;
  readonly deviation: number;
  /** [count]: -1 to 1; the base of a candidate without a vector. */
  readonly nearness: Float64Array;
}

const EPSILON = 1e-12;

/** `weights` [count]: how much of each candidate is added to the query. */
export function readOut(list: RankList, { weights, normed, nearness }: AttentionRoom): Readout {
  const { query, queryScale, vectors, scales, base, count } = list;
  const dim = query.length;
  for (let d = 0; d < dim; d++) normed[d] = query[d]! * queryScale;
  addWeighted(normed, list, weights, 1);
  let mean = 0;
  for (let d = 0; d < dim; d++) mean += normed[d]!;
  mean /= dim;
  let variance = 0;
  for (let d = 0; d < dim; d++) variance += (normed[d]! - mean) ** 2;
  const deviation = Math.sqrt(variance / dim + EPSILON);
  for (let d = 0; d < dim; d++) normed[d] = (normed[d]! - mean) / deviation;
  const unit = 1 / Math.sqrt(dim); // A normalized vector has the length √dim.
  for (let i = 0; i < count; i++) {
    nearness[i] = scales[i] === 0 ? base[i]! : dot(normed, vectors[i]!) * scales[i]! * unit;
  }
  return { normed, deviation, nearness };
}

/** Gradient of `weights`, given that of the nearness. */
export function readOutBackward(list: RankList, { normed, deviation }: Readout, slopes: Float64Array): Float64Array {
  const { vectors, scales, count } = list;
  const dim = normed.length;
  const unit = 1 / Math.sqrt(dim);
  const inner = new Float64Array(dim);
  addWeighted(inner, list, slopes, unit);
  // LayerNorm: a shift or a scaling of its input changes nothing.
  let mean = 0;
  let along = 0;
  for (let d = 0; d < dim; d++) {
    mean += inner[d]!;
    along += inner[d]! * normed[d]!;
  }
  mean /= dim;
  along /= dim;
  for (let d = 0; d < dim; d++) inner[d] = (inner[d]! - mean - normed[d]! * along) / deviation;
  return Float64Array.from({ length: count }, (_, i) => (scales[i] === 0 ? 0 : dot(inner, vectors[i]!) * scales[i]!));
}

/** Adds every normalized candidate times its weight times `factor`; four at a time, because each pass reads and writes `to`. */
function addWeighted(to: Float64Array, list: RankList, weights: Float64Array, factor: number): void {
  const { scales, vectors, count } = list;
  const rows: number[] = [];
  for (let i = 0; i < count; i++) if (scales[i] !== 0) rows.push(i);
  const weightOf = (i: number): number => weights[i]! * scales[i]! * factor;
  let at = 0;
  for (; at + 3 < rows.length; at += 4) {
    const [i, j, k, l] = [rows[at]!, rows[at + 1]!, rows[at + 2]!, rows[at + 3]!];
    const [a, b, c, d] = [vectors[i]!, vectors[j]!, vectors[k]!, vectors[l]!];
    const [wa, wb, wc, wd] = [weightOf(i), weightOf(j), weightOf(k), weightOf(l)];
    for (let x = 0; x < to.length; x++) to[x]! += wa * a[x]! + wb * b[x]! + wc * c[x]! + wd * d[x]!;
  }
  for (; at < rows.length; at++) {
    const vector = vectors[rows[at]!]!;
    const weight = weightOf(rows[at]!);
    for (let x = 0; x < to.length; x++) to[x]! += weight * vector[x]!;
  }
}

/** Four independent sums avoid waiting for each addition. */
function dot(a: Float64Array, b: Float32Array): number {
  const length = a.length;
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  let d = 0;
  for (; d + 3 < length; d += 4) {
    s0 += a[d]! * b[d]!;
    s1 += a[d + 1]! * b[d + 1]!;
    s2 += a[d + 2]! * b[d + 2]!;
    s3 += a[d + 3]! * b[d + 3]!;
  }
  for (; d < length; d++) s0 += a[d]! * b[d]!;
  return s0 + s1 + s2 + s3;
}
