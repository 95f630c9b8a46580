// Re-ranking of retrieved context by graph attention: trained on some intents, tested on others, beside similarity and the present order.
import { measureRerank } from './support/learn/rerank.ts';
import { whyNoRerankData } from './support/learn/rerank-data.ts';
import { printTable } from './support/report.ts';

const why = whyNoRerankData();
if (why !== null) {
  console.error(why);
  process.exit(1);
}
const { worlds, scoreMs } = await measureRerank((line) => console.error(line));
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
    'NDCG over present',
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
console.log(JSON.stringify({
  rerank_ndcg_gain: worlds[0]!.overSimilarity.mean,
  rerank_ndcg_gain_ci_low: worlds[0]!.overSimilarity.low,
  rerank_shuffled_selected: worlds[1]!.isSelected,
  rerank_rewired_selected: worlds[2]!.isSelected,
  rerank_score_ms: scoreMs,
})); // prettier-ignore
