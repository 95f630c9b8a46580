import { TOP_SUM_TOLERANCE, type TopLogits } from '../core/top-logits.ts';

/** The best tokens after bias and penalties, best first: none is missing between them. */
export interface Ranking {
  readonly ids: Int32Array;
  readonly values: Float32Array;
  readonly count: number;
  /** Nothing else is in the race. */
  readonly isWhole: boolean;
  /** exp(value - the best of these) summed over all tokens, and by how much that may be off. */
  readonly sumExp: number;
  readonly error: number;
}

/** Logits of the tokens that bias and penalties name. */
export type Changed = ReadonlyMap<number, { readonly before: number; readonly after: number }>;

/** Merges the best logits with those that were changed; null when the whole row has to be looked at. */
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
    // What ranks behind the last of the best may rank behind others that are not known.
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
  // From the row's own maximum to that of what is left.
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
