// Re-ranking of retrieved context by graph attention: trained on some intents, tested on others, compared with
// similarity and the current order.
import type { Figures } from './findings.ts';
import { measureRerank } from './rerank.ts';
import { whyNoRerankData } from './rerank-data.ts';
import { printTable } from '../report.ts';

export async function showRerank(log: (line: string) => void): Promise<Figures> {
  const why = whyNoRerankData();
  if (why !== null) throw new Error(why);
  const { worlds, shuffles, scoreMs, scoreP99Ms } = await measureRerank(log);
  const show = ({ mean, low, high }: { mean: number; low: number; high: number }): string =>
    `${mean.toFixed(4)} (${low.toFixed(4)} to ${high.toFixed(4)})`;
  printTable([
    ['world', 'order', 'MRR', 'NDCG@10'],
    ...worlds.flatMap(({ name, rows }) =>
      rows.map(({ order, mrr, ndcg }) => [name, order, mrr.toFixed(4), ndcg.toFixed(4)]),
    ),
  ]);
  console.log('');
  printTable([
    [
      'world',
      'selected',
      'NDCG over similarity',
      'by intent',
      'over no edges',
      'NDCG over current order',
      'MRR over similarity',
      'epochs',
    ],
    ...worlds.map((world) => [
      world.name,
      world.isSelected ? 'yes' : 'no',
      show(world.overSimilarity),
      show(world.overSimilarityByIntent),
      show(world.overNoEdges),
      show(world.overPresent),
      show(world.mrrOverSimilarity),
      String(world.numEpochs),
    ]),
  ]);
  for (const { name, reason } of worlds) console.log(`${name}: ${reason}`);
  const { numShuffles, numAccepted, numAcceptedByTruth, numAcceptedByPairs } = shuffles;
  console.log(
    `of ${numShuffles} shuffles the gate accepted ${numAccepted} judged by shuffled use and ${numAcceptedByTruth} by true use; ` +
      `only by intervals over pairs, for both: ${numAcceptedByPairs} of ${2 * numShuffles}`,
  );
  const [real, shuffled, rewired] = worlds;
  return {
    rerank_ndcg_gain: real!.overSimilarity.mean,
    rerank_ndcg_gain_ci_low: real!.overSimilarity.low,
    rerank_edges_gain: real!.overNoEdges.mean,
    rerank_edges_gain_ci_low: real!.overNoEdges.low,
    rerank_shuffled_gain: shuffled!.overSimilarity.mean,
    rerank_shuffled_selected: shuffled!.isSelected,
    rerank_rewired_edges_gain: rewired!.overNoEdges.mean,
    rerank_shuffles: numShuffles,
    rerank_shuffles_accepted: numAccepted,
    rerank_shuffles_accepted_by_truth: numAcceptedByTruth,
    rerank_shuffles_accepted_by_pairs: numAcceptedByPairs,
    rerank_score_ms: scoreMs,
    rerank_score_p99_ms: scoreP99Ms,
  };
}
