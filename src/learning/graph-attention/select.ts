import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import { type ClusteredChange, clusteredChange } from '../gate/clustered.ts';
import { isInformative } from './list-loss.ts';
import { ndcg, reciprocalRank } from './ranking-metrics.ts';
import type { Reranker } from './reranker.ts';
import type { RankExample } from './types.ts';

export interface SelectionOptions {
  /** Ranks that NDCG counts. Default 10. */
  readonly k?: number;
  /** Fewer held-out queries decide nothing. Default 20. */
  readonly minQueries?: number;
  /** Fewer conversations decide nothing. Default 10. */
  readonly minGroups?: number;
  /** Least rise of NDCG: less does not justify a changed order. Default 0.01. */
  readonly minGain?: number;
}

/** A trained re-ranker and its evaluation sets. */
export interface RerankTrial {
  /** Not used in training. */
  readonly heldOut: readonly RankExample[];
  /** Chose the best epoch: with random use it does not improve even these. Default: not used. */
  readonly tuned?: readonly RankExample[];
  /** Active re-ranker; default: similarity. */
  readonly serving?: Reranker | null;
}

/** Means over held-out queries. */
export interface RankingQuality {
  readonly mrr: number;
  readonly ndcg: number;
}

export interface RerankSelection {
  /** `trained`: the new one becomes active; `similarity`: the active one is worse than none; else nothing changes. */
  readonly next: 'trained' | 'similarity' | 'unchanged';
  /** With the figures. */
  readonly reason: string;
  readonly numQueries: number;
  readonly numGroups: number;
  readonly similarity: RankingQuality;
  /** The order of the search without re-ranking. */
  readonly present: RankingQuality;
  readonly trained: RankingQuality;
  /** Change of NDCG over the same queries, by conversation. */
  readonly overSimilarity: ClusteredChange;
  readonly overPresent: ClusteredChange;
  readonly mrrOverSimilarity: ClusteredChange;
}

/** Quality of each query under these scores. */
export function rankingOf(
  examples: readonly RankExample[],
  scoresOf: (example: RankExample) => ArrayLike<number>,
  k: number,
): { mrr: number[]; ndcg: number[] } {
  const scores = examples.map(scoresOf);
  return {
    mrr: examples.map(({ used }, i) => reciprocalRank(scores[i]!, used)),
    ndcg: examples.map(({ used }, i) => ndcg(scores[i]!, used, k)),
  };
}

export const similarityScores = ({ candidates }: RankExample): number[] =>
  candidates.map(({ similarity, score }) => similarity ?? score);
export const presentScores = ({ candidates }: RankExample): number[] => candidates.map(({ score }) => score);

/**
 * Accepts a re-ranker only if its NDCG of held-out queries is higher by a margin, with a 95 % interval above zero (conversations
 * resampled), than that of similarity, of the search's own order and of the active one; if NDCG also rises on the tuning lists; and if MRR
 * is not significantly lower.
 */
export function selectReranker(trained: Reranker, trial: RerankTrial, given?: SelectionOptions): RerankSelection {
  const options = resolveOptions<Required<SelectionOptions>>('re-ranking selection', given, {
    k: integerOption(10, 1, 1000),
    minQueries: integerOption(20, 2, 1_000_000),
    minGroups: integerOption(10, 2, 1_000_000),
    minGain: numberOption(0.01, 0, 1),
  });
  const { k } = options;
  const examples = trial.heldOut.filter(({ used }) => isInformative(used));
  const groups = examples.map(({ group }) => group);
  const similarity = rankingOf(examples, similarityScores, k);
  const present = rankingOf(examples, presentScores, k);
  const learned = rankingOf(examples, (example) => trained.score(example), k);
  const serving = trial.serving == null ? null : rankingOf(examples, (example) => trial.serving!.score(example), k);
  const figures = {
    numQueries: examples.length,
    numGroups: new Set(groups).size,
    similarity: meansOf(similarity),
    present: meansOf(present),
    trained: meansOf(learned),
    overSimilarity: clusteredChange(similarity.ndcg, learned.ndcg, groups),
    overPresent: clusteredChange(present.ndcg, learned.ndcg, groups),
    mrrOverSimilarity: clusteredChange(similarity.mrr, learned.mrr, groups),
  };
  const { overSimilarity, overPresent, mrrOverSimilarity, numQueries, numGroups } = figures;
  const stay = (reason: string): RerankSelection => ({ next: 'unchanged', reason, ...figures });
  if (numQueries < options.minQueries) {
    return stay(`${numQueries} held-out queries are too few to decide, ${options.minQueries} are needed`);
  }
  if (numGroups < options.minGroups) {
    return stay(
      `held-out queries of ${numGroups} conversations are too few to decide, ${options.minGroups} are needed`,
    );
  }
  const changes: [string, ClusteredChange][] = [
    ['similarity', overSimilarity],
    ['the present order', overPresent],
  ];
  if (serving !== null) changes.push(['what serves', clusteredChange(serving.ndcg, learned.ndcg, groups)]);
  const worst = changes.find(([, { low, mean }]) => !(low > 0 && mean >= options.minGain));
  const refuse = (reason: string): RerankSelection => {
    if (serving === null) return stay(reason);
    const back = clusteredChange(serving.ndcg, similarity.ndcg, groups);
    if (!(back.low > 0)) return stay(reason);
    return { next: 'similarity', reason: `back to similarity: NDCG@${k} rises by ${show(back)}`, ...figures };
  };
  if (worst !== undefined) {
    const [name, change] = worst;
    const why = change.low > 0 ? `less than the ${options.minGain} it must be` : 'that it rises is not sure';
    return refuse(`NDCG@${k} changes by ${show(change)} against ${name}: ${why}`);
  }
  if (mrrOverSimilarity.high < 0) {
    return refuse(`the first used one comes later: MRR changes by ${show(mrrOverSimilarity)}`);
  }
  const tuned = trial.tuned === undefined ? null : changeOn(trained, trial.tuned, k);
  if (tuned !== null && !(tuned.low > 0)) {
    return refuse(`NDCG@${k} changes by ${show(tuned)} on what it was tuned on: use at random teaches no order`);
  }
  return { next: 'trained', reason: `NDCG@${k} rises by ${show(overSimilarity)} against similarity`, ...figures };
}

function changeOn(trained: Reranker, tuned: readonly RankExample[], k: number): ClusteredChange {
  const examples = tuned.filter(({ used }) => isInformative(used));
  const [before, after] = [
    rankingOf(examples, similarityScores, k),
    rankingOf(examples, (one) => trained.score(one), k),
  ];
  return clusteredChange(before.ndcg, after.ndcg, examples.map(({ group }) => group)); // prettier-ignore
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
const meansOf = (of: { mrr: number[]; ndcg: number[] }): RankingQuality => ({ mrr: mean(of.mrr), ndcg: mean(of.ndcg) });
const show = ({ mean: by, low, high, count, numGroups }: ClusteredChange): string =>
  `${by.toFixed(4)} (95 % ${low.toFixed(4)} to ${high.toFixed(4)}, ${count} queries of ${numGroups} conversations)`;
