import { integerOption, resolveOptions } from '../../core/options.ts';
import { pairedChange, type PairedChange } from '../gate/paired.ts';
import { isInformative } from './list-loss.ts';
import { ndcg, reciprocalRank } from './ranking-metrics.ts';
import type { Reranker } from './reranker.ts';
import type { RankExample } from './types.ts';

export interface SelectionOptions {
  /** Places that count. Default 10. */
  readonly k?: number;
  /** Fewer held-out queries decide nothing. Default 20. */
  readonly minQueries?: number;
}

/** Means of one order over held-out queries. */
export interface RankingQuality {
  readonly mrr: number;
  readonly ndcg: number;
}

export interface RerankSelection {
  /** What ranks from now on; null: similarity, as before. */
  readonly reranker: Reranker | null;
  /** For people, with the figures. */
  readonly reason: string;
  readonly numQueries: number;
  readonly similarity: RankingQuality;
  /** The order of the search without re-ranking: similarity, and what is inherited along the graph. */
  readonly present: RankingQuality;
  readonly trained: RankingQuality;
  /** Of NDCG, over the same queries. */
  readonly overSimilarity: PairedChange;
  readonly overPresent: PairedChange;
  readonly mrrOverSimilarity: PairedChange;
}

/** How each query is ranked by some scores. */
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
 * Lets a trained re-ranking serve only where its NDCG of held-out queries is surely higher (95 % of the paired mean above zero) than that
 * of similarity and that of the order the search has anyway, and its first hit surely does not come later.
 */
export function selectReranker(
  trained: Reranker,
  heldOut: readonly RankExample[],
  given?: SelectionOptions,
): RerankSelection {
  const { k, minQueries } = resolveOptions<Required<SelectionOptions>>('re-ranking selection', given, {
    k: integerOption(10, 1, 1000),
    minQueries: integerOption(20, 2, 1_000_000),
  });
  const examples = heldOut.filter(({ used }) => isInformative(used));
  const similarity = rankingOf(examples, similarityScores, k);
  const present = rankingOf(examples, presentScores, k);
  const learned = rankingOf(examples, (example) => trained.score(example), k);
  const figures = {
    numQueries: examples.length,
    similarity: meansOf(similarity),
    present: meansOf(present),
    trained: meansOf(learned),
    overSimilarity: pairedChange(similarity.ndcg, learned.ndcg),
    overPresent: pairedChange(present.ndcg, learned.ndcg),
    mrrOverSimilarity: pairedChange(similarity.mrr, learned.mrr),
  };
  const refuse = (reason: string): RerankSelection => ({ reranker: null, reason, ...figures });
  const { overSimilarity, overPresent, mrrOverSimilarity } = figures;
  if (examples.length < minQueries) {
    return refuse(`${examples.length} held-out queries are too few to decide, ${minQueries} are needed`);
  }
  if (!(overSimilarity.low > 0)) {
    return refuse(`NDCG@${k} changes by ${show(overSimilarity)} against similarity: that it rises is not sure`);
  }
  if (!(overPresent.low > 0)) {
    return refuse(`NDCG@${k} changes by ${show(overPresent)} against the present order: that it rises is not sure`);
  }
  if (mrrOverSimilarity.high < 0) {
    return refuse(`the first used one comes later: MRR changes by ${show(mrrOverSimilarity)}`);
  }
  return { reranker: trained, reason: `NDCG@${k} rises by ${show(overSimilarity)} against similarity`, ...figures };
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
const meansOf = (of: { mrr: number[]; ndcg: number[] }): RankingQuality => ({ mrr: mean(of.mrr), ndcg: mean(of.ndcg) });
const show = ({ mean: by, low, high, count }: PairedChange): string =>
  `${by.toFixed(4)} (95 % ${low.toFixed(4)} to ${high.toFixed(4)}, ${count} queries)`;
