import { TOP_SUM_TOLERANCE, type TopLogits } from '../core/top-logits.ts';
import type { Candidates } from './candidates.ts';
import { ranksBefore } from './select.ts';
import type { SamplerStep } from './step.ts';
import type { SamplingParams } from './types.ts';

/** Enough that the nucleus of most next tokens is among them, and few enough that finding them costs little. */
const NUM_CANDIDATES = 256;
/** So that tokens which penalties have lowered leave a best one over. */
const NUM_LOWERED = 64;

/** How many of the best logits are worth asking for; 0: only the whole row will do. */
export function countCandidates(params: SamplingParams, chain: readonly SamplerStep[]): number {
  const reported = params.topLogprobs === null ? 0 : Math.max(1, params.topLogprobs);
  const isShaped = chain.some(({ kind }) => kind === 'shape');
  if (params.temperature === 0) return Math.max(reported, isShaped ? NUM_LOWERED : 1);
  if (params.topK > 0) {
    const needed = params.topK + (isShaped ? NUM_LOWERED : 0);
    return params.topK <= NUM_CANDIDATES ? Math.max(reported, Math.min(NUM_CANDIDATES, needed)) : reported;
  }
  const isCut = params.topP < 1 || params.minP > 0;
  return params.typicalP < 1 || !isCut ? reported : NUM_CANDIDATES;
}

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

/** What `rank` is given of the tokens that bias and penalties name: their logits before and after. */
export type Changed = ReadonlyMap<number, { readonly before: number; readonly after: number }>;

/** Merges the best logits with those that were changed; null when the whole row has to be looked at. */
export function rank(top: TopLogits, vocabSize: number, changed: Changed): Ranking | null {
  const isWhole = top.ids.length === vocabSize || top.values.at(-1) === -Infinity;
  const last = { id: top.ids.at(-1)!, value: top.values.at(-1)! };
  const ids: number[] = [];
  const values: number[] = [];
  const add = (id: number, value: number): void => {
    if (value === -Infinity) return;
    ids.push(id);
    values.push(value);
  };
  for (let i = 0; i < top.ids.length; i++) if (!changed.has(top.ids[i]!)) add(top.ids[i]!, top.values[i]!);
  let difference = 0;
  let magnitude = top.sumExp;
  for (const [id, { before, after }] of changed) {
    if (!(after < Infinity)) return null;
    // Whatever ranks behind the last of the best may rank behind others that are not known.
    if (isWhole || after > last.value || (after === last.value && id <= last.id)) add(id, after);
    const [old, now] = [Math.exp(before - top.max), Math.exp(after - top.max)];
    difference += now - old;
    magnitude += old + now;
  }
  if (ids.length === 0) return null;
  const ranking = changed.size === 0 ? { ids, values } : sorted(ids, values);
  // From the row's own maximum to that of what is left.
  const scale = Math.exp(top.max - ranking.values[0]!);
  return {
    ids: Int32Array.from(ranking.ids),
    values: Float32Array.from(ranking.values),
    count: ids.length,
    isWhole,
    sumExp: (top.sumExp + difference) * scale,
    error: magnitude * scale * TOP_SUM_TOLERANCE,
  };
}

function sorted(ids: readonly number[], values: readonly number[]): { ids: number[]; values: number[] } {
  const order = ids.map((_, i) => i).sort((a, b) => values[b]! - values[a]! || ids[a]! - ids[b]!);
  return { ids: order.map((i) => ids[i]!), values: order.map((i) => values[i]!) };
}
