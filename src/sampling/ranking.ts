import { TOP_SUM_TOLERANCE, type TopLogits } from '../core/top-logits.ts';

/** The top tokens after bias and penalties, best first, without gaps. */
export interface Ranking {
  readonly ids: Int32Array;
  readonly values: Float32Array;
  readonly count: number;
  /** No other token remains. */
  readonly isWhole: boolean;
  /** exp(value - best) summed over all tokens, and its error bound. */
  readonly sumExp: number;
  readonly error: number;
}

/** Logits of the tokens that bias and penalties name. */
export type Changed = ReadonlyMap<number, { readonly before: number; readonly after: number }>;

/** Merges the top logits with the changed ones; null if the whole row is needed. */
export function rank(top: TopLogits, vocabSize: number, changed: Changed): Ranking | null {
  const size = top.ids.length;
  const [lastId, lastValue] = [top.ids[size - 1]!, top.values[size - 1]!];
  const isWhole = size === vocabSize || lastValue === -Infinity;
  const ids = new Int32Array(size + changed.size);
  const values = new Float32Array(size + changed.size);
  let count = 0;
  const add = (id: number, value: number): void => {
    if (value === -Infinity) return;
    ids[count] = id;
    values[count++] = value;
  };
  for (let i = 0; i < size; i++) if (!changed.has(top.ids[i]!)) add(top.ids[i]!, top.values[i]!);
  let difference = 0;
  let magnitude = top.sumExp;
  for (const [id, { before, after }] of changed) {
    if (!(after < Infinity)) return null;
    // Tokens below the last of the top may rank below unknown ones.
    if (isWhole || after > lastValue || (after === lastValue && id <= lastId)) add(id, after);
    const [old, now] = [Math.exp(before - top.max), Math.exp(after - top.max)];
    difference += now - old;
    magnitude += old + now;
  }
  if (count === 0) return null;
  const isSorted = changed.size === 0;
  const order = isSorted ? [] : Array.from({ length: count }, (_, i) => i);
  order.sort((a, b) => values[b]! - values[a]! || ids[a]! - ids[b]!);
  const best = isSorted ? values[0]! : values[order[0]!]!;
  // Rescaled from the row's maximum to that of the remaining tokens.
  const scale = Math.exp(top.max - best);
  return {
    ids: isSorted ? ids : Int32Array.from(order, (i) => ids[i]!),
    values: isSorted ? values : Float32Array.from(order, (i) => values[i]!),
    count,
    isWhole,
    sumExp: (top.sumExp + difference) * scale,
    error: magnitude * scale * TOP_SUM_TOLERANCE,
  };
}
