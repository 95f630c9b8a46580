import type { PairedChange } from '../../../src/learning/gate/paired.ts';
import type { Reranker } from '../../../src/learning/graph-attention/reranker.ts';
import { importBuilt } from '../dist.ts';
import { median } from '../report.ts';
import { retrieveQueries, type Query, type QueryParts } from './rerank-data.ts';

const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
const { pairedChange } = await importBuilt<typeof import('../../../src/learning/gate/paired.ts')>('learning/gate/paired'); // prettier-ignore
const { createReranker, untrainedState } = await importBuilt<typeof import('../../../src/learning/graph-attention/reranker.ts')>('learning/graph-attention/reranker'); // prettier-ignore
const { presentScores, rankingOf, selectReranker, similarityScores } = await importBuilt<typeof import('../../../src/learning/graph-attention/select.ts')>('learning/graph-attention/select'); // prettier-ignore
const { trainReranker } = await importBuilt<typeof import('../../../src/learning/graph-attention/train.ts')>('learning/graph-attention/train'); // prettier-ignore

const K = 10;
const SEED = 7;
/** Six trainings in about a minute; the best epoch of longer ones was the third to tenth. */
const TRAINING = { maxEpochs: 12, patience: 3 };
const SPEED_RUNS = 1000;

export interface RerankWorld {
  readonly name: string;
  readonly isSelected: boolean;
  readonly reason: string;
  readonly numEpochs: number;
  readonly rows: readonly { readonly order: string; readonly mrr: number; readonly ndcg: number }[];
  /** On queries of intents nobody trained, validated or selected on. */
  readonly overSimilarity: PairedChange;
  readonly overPresent: PairedChange;
  readonly mrrOverSimilarity: PairedChange;
  /** The same with a mean for each intent: queries of one intent are not independent. */
  readonly overSimilarityByIntent: PairedChange;
  /** Against the same attention trained and tested without any edge: what the edges themselves are worth. */
  readonly overNoEdges: PairedChange;
}

export interface RerankFigures {
  readonly worlds: readonly RerankWorld[];
  /** Of 64 candidates of 768 values. */
  readonly scoreMs: number;
}

/** Trains, selects and tests re-ranking on true edges, and twice where nothing can be learned. */
export async function measureRerank(log: (line: string) => void = () => {}): Promise<RerankFigures> {
  log('retrieving …');
  const linked = await retrieveQueries(SEED, false);
  const real = measureWorld('true edges', linked, log);
  const shuffled = measureWorld('control: used ones shuffled', withShuffledUse(linked), log);
  const rewired = measureWorld('control: edges rewired', await retrieveQueries(SEED, true), log);
  return {
    worlds: [real.world, shuffled.world, rewired.world],
    scoreMs: measureSpeed(real.reranker, linked.test),
  };
}

function measureWorld(
  name: string,
  { train, validation, selection, test }: QueryParts,
  log: (line: string) => void,
): { world: RerankWorld; reranker: Reranker } {
  log(`training on ${train.length} queries, ${name} …`);
  const { reranker, numEpochs } = trainOn({ train, validation });
  const { reranker: chosen, reason } = selectReranker(reranker, selection, { k: K });
  const edgeless = trainOn({ train: withoutEdges(train), validation: withoutEdges(validation) }).reranker;
  const similarity = rankingOf(test, similarityScores, K);
  const present = rankingOf(test, presentScores, K);
  const plain = rankingOf(withoutEdges(test), (query) => edgeless.score(query), K);
  const learned = rankingOf(test, (query) => reranker.score(query), K);
  const orders = {
    similarity,
    'similarity × hop factor (present)': present,
    'attention without edges': plain,
    'graph attention': learned,
  };
  const rows = Object.entries(orders).map(([order, { mrr, ndcg }]) => ({ order, mrr: mean(mrr), ndcg: mean(ndcg) }));
  const world = {
    name,
    isSelected: chosen !== null,
    reason,
    numEpochs,
    rows,
    overSimilarity: pairedChange(similarity.ndcg, learned.ndcg),
    overPresent: pairedChange(present.ndcg, learned.ndcg),
    mrrOverSimilarity: pairedChange(similarity.mrr, learned.mrr),
    overSimilarityByIntent: pairedChange(byIntent(test, similarity.ndcg), byIntent(test, learned.ndcg)),
    overNoEdges: pairedChange(plain.ndcg, learned.ndcg),
  };
  return { world, reranker };
}

function trainOn({ train, validation }: Pick<QueryParts, 'train' | 'validation'>) {
  const start = untrainedState(train[0]!.query.length, SEED);
  const { state, bestEpoch } = trainReranker(start, train, validation, { seed: SEED, ...TRAINING });
  return { reranker: createReranker(state), numEpochs: bestEpoch };
}

const withoutEdges = (queries: readonly Query[]): Query[] =>
  queries.map((query) => ({ ...query, candidates: query.candidates.map((one) => ({ ...one, edges: [] })) }));

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function byIntent(queries: readonly Query[], values: readonly number[]): number[] {
  const intents = [...new Set(queries.map(({ intent }) => intent))];
  return intents.map((wanted) => mean(values.filter((_, i) => queries[i]!.intent === wanted)));
}

/** As many are used, but others; what it is selected and tested on stays true. */
function withShuffledUse(parts: QueryParts): QueryParts {
  const random = createRandom(SEED);
  const shuffle = (query: Query): Query => {
    const keys = query.used.map(() => random.next());
    const order = query.used.map((_, i) => i).sort((a, b) => keys[a]! - keys[b]!);
    return { ...query, used: order.map((i) => query.used[i]!) };
  };
  return { ...parts, train: parts.train.map(shuffle), validation: parts.validation.map(shuffle) };
}

function measureSpeed(reranker: Reranker, queries: readonly Query[]): number {
  const lists = queries.slice(0, 50).map(({ query, candidates }) => ({
    query,
    candidates: candidates.slice(0, 64).map(({ edges, ...rest }) => ({
      ...rest,
      edges: edges.filter(({ other }) => other < 64),
    })),
  }));
  const times: number[] = [];
  for (let i = 0; i < SPEED_RUNS; i++) {
    const list = lists[i % lists.length]!;
    const began = performance.now();
    reranker.score(list);
    times.push(performance.now() - began);
  }
  return median(times.slice(SPEED_RUNS / 10));
}
