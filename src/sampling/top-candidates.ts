import type { TopLogits } from '../core/top-logits.ts';
import { type Candidates, createCandidates } from './candidates.ts';
import { type Changed, type Ranking, rank } from './ranking.ts';
import type { SamplerStep } from './step.ts';
import { TOP_P } from './top-p.ts';
import type { SamplingParams } from './types.ts';

/** Enough to contain the nucleus of most next tokens, few enough to find cheaply. */
const NUM_CANDIDATES = 256;
/** Extra tokens, in case penalties lower some. */
const NUM_LOWERED = 64;

/** How many top logits to request; 0: the whole row is needed. */
export function countCandidates(params: SamplingParams, chain: readonly SamplerStep[]): number {
  const reported = params.topLogprobs === null ? 0 : Math.max(1, params.topLogprobs);
  const lowered = chain.some(({ kind }) => kind === 'shape') ? NUM_LOWERED : 0;
  if (params.temperature === 0) return Math.max(reported, 1 + lowered);
  if (params.topK > NUM_CANDIDATES) return reported;
  if (params.topK > 0) return Math.max(reported, Math.min(NUM_CANDIDATES, params.topK + lowered));
  const isCut = params.topP < 1 || params.minP > 0;
  return params.typicalP < 1 || !isCut ? reported : NUM_CANDIDATES;
}

/** Candidates from the top logits alone, or null where they do not determine the result of the whole row. */
export interface TopCandidates {
  /** The best token after bias and penalties, or null. */
  best(logits: Float32Array, history: readonly number[], top: TopLogits): number | null;
  /** The candidates after truncation, ids ascending, or null. */
  truncate(logits: Float32Array, history: readonly number[], top: TopLogits): Candidates | null;
  /** Whether rows are never read as long as there are candidates: nothing else of them is asked for. */
  readonly areEnough: boolean;
  /** Whether `truncate` returns candidates. */
  isNucleusKnown(top: TopLogits, numLogits: number): boolean;
}

export function createTopCandidates(params: SamplingParams, chain: readonly SamplerStep[]): TopCandidates {
  const shapes = chain.filter((step) => step.kind === 'shape');
  const truncations = chain.filter((step) => step.kind === 'truncate');
  let shaped = createCandidates(0);
  let kept = createCandidates(0);

  /** Runs the shaping steps only on the logits they name. */
  function change(logits: Float32Array, history: readonly number[]): Changed {
    if (shapes.length === 0) return new Map();
    if (shaped.values.length !== logits.length) {
      shaped = { ...createCandidates(0), count: logits.length, values: new Float32Array(logits.length) };
    }
    const ids = new Set(shapes.flatMap((step) => [...step.names(params, history)]));
    for (const id of ids) shaped.values[id] = logits[id]!;
    for (const step of shapes) step.apply(shaped, params, history);
    return new Map(Array.from(ids, (id) => [id, { before: logits[id]!, after: shaped.values[id]! }]));
  }

  function take({ ids, values }: Ranking, count: number): Candidates {
    if (kept.ids.length < count) kept = createCandidates(count);
    const order = kept.keys.subarray(0, count);
    for (let i = 0; i < count; i++) order[i] = ids[i]! * 2 ** 21 + i; // sorts by id without a comparison callback
    order.sort().forEach((key, i) => {
      const from = key % 2 ** 21;
      kept.ids[i] = ids[from]!;
      kept.values[i] = values[from]!;
    });
    kept.count = count;
    return kept;
  }

  /** How many of the ranking truncation must see; null: unknown. */
  function countNeeded(ranking: Ranking): number | null {
    const { values, count, isWhole } = ranking;
    if (params.topK > 0) return isWhole || params.topK <= count ? count : null;
    if (params.typicalP < 1) return null;
    if (params.topP < 1) return countNucleus(ranking, params.topP);
    if (params.minP === 0) return null;
    return isWhole || values[count - 1]! < values[0]! + Math.log(params.minP) ? count : null;
  }

  const needed = (ranking: Ranking | null): number | null => (ranking === null ? null : countNeeded(ranking));

  return {
    areEnough: shapes.length === 0 && params.topLogprobs === null && countCandidates(params, chain) > 0,
    isNucleusKnown: (top, numLogits) => needed(rank(top, numLogits, new Map())) !== null,
    best: (logits, history, top) =>
      shapes.length === 0 ? top.ids[0]! : (rank(top, logits.length, change(logits, history))?.ids[0] ?? null),
    truncate(logits, history, top) {
      const ranking = rank(top, logits.length, change(logits, history));
      const count = needed(ranking);
      if (count === null) return null;
      const candidates = take(ranking!, count);
      const isNucleus = params.topK === 0;
      for (const step of truncations) if (!(isNucleus && step === TOP_P)) step.apply(candidates, params, history);
      return candidates;
    },
  };
}

/** Where the weights certainly reach p of the sum; null if that is within the sum's error, or beyond the known tokens. */
function countNucleus({ values, count, sumExp, error }: Ranking, p: number): number | null {
  const target = p * sumExp;
  let mass = 0;
  for (let i = 0; i < count; i++) {
    mass += Math.exp(values[i]! - values[0]!);
    if (mass >= target - error) return mass >= target + error ? i + 1 : null;
  }
  return null;
}
