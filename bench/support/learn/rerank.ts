import type { PairedChange } from '../../../src/learning/gate/paired.ts';
import type { Reranker } from '../../../src/learning/graph-attention/reranker.ts';
import { importBuilt } from '../dist.ts';
import { median } from '../report.ts';
import { retrieveQueries, type Query, type QueryParts } from './rerank-data.ts';

const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
const { clusteredChange } = await importBuilt<typeof import('../../../src/learning/gate/clustered.ts')>('learning/gate/clustered'); // prettier-ignore
const { pairedChange } = await importBuilt<typeof import('../../../src/learning/gate/paired.ts')>('learning/gate/paired'); // prettier-ignore
const { createReranker, untrainedState } = await importBuilt<typeof import('../../../src/learning/graph-attention/reranker.ts')>('learning/graph-attention/reranker'); // prettier-ignore
const { presentScores, rankingOf, selectReranker, similarityScores } = await importBuilt<typeof import('../../../src/learning/graph-attention/select.ts')>('learning/graph-attention/select'); // prettier-ignore
const { trainReranker } = await importBuilt<typeof import('../../../src/learning/graph-attention/train.ts')>('learning/graph-attention/train'); // prettier-ignore

const K = 10;
const SEED = 7;
/** Six trainings in about a minute; the best epoch of longer ones was the third to tenth. */
const TRAINING = { maxEpochs: 12, patience: 3 };
const SPEED_RUNS = 1000;
const SPEED_CANDIDATES = 20;

export interface RerankWorld {
  readonly name: string;
  readonly isSelected: boolean;
  readonly reason: string;
  readonly numEpochs: number;
  readonly rows: readonly { readonly order: string; readonly mrr: number; readonly ndcg: number }[];
  /** On queries of intents outside training, validation and selection. */
  readonly overSimilarity: PairedChange;
  readonly overPresent: PairedChange;
  readonly mrrOverSimilarity: PairedChange;
  /** The same with whole intents resampled: queries of one intent are not independent. */
  readonly overSimilarityByIntent: PairedChange;
  /** Compared with the same attention without any edge: the value of the edges. */
  readonly overNoEdges: PairedChange;
}

export interface RerankFigures {
  readonly worlds: readonly RerankWorld[];
  readonly shuffles: ShuffledGates;
  /** Of 20 candidates. */
  readonly scoreMs: number;
  readonly scoreP99Ms: number;
}

/** Trains, selects and tests re-ranking on true edges, and twice where nothing can be learned. */
export async function measureRerank(log: (line: string) => void = () => {}): Promise<RerankFigures> {
  log('retrieving …');
  const linked = await retrieveQueries(SEED, false);
  const real = measureWorld('true edges', linked, log);
  const shuffled = measureWorld('control: shuffled use', withShuffledUse(linked), log);
  const rewired = measureWorld('control: edges rewired', await retrieveQueries(SEED, true), log);
  return {
    worlds: [real.world, shuffled.world, rewired.world],
    shuffles: countShuffles(linked, log),
    ...measureSpeed(real.reranker, linked.test),
  };
}

function measureWorld(
  name: string,
  { train, validation, selection, test }: QueryParts,
  log: (line: string) => void,
): { world: RerankWorld; reranker: Reranker } {
  log(`training on ${train.length} queries, ${name} …`);
  const { reranker, numEpochs } = trainOn({ train, validation });
  const { next, reason } = selectReranker(reranker, { heldOut: selection, tuned: validation }, { k: K });
  const edgeless = trainOn({ train: withoutEdges(train), validation: withoutEdges(validation) }).reranker;
  const similarity = rankingOf(test, similarityScores, K);
  const present = rankingOf(test, presentScores, K);
  const plain = rankingOf(withoutEdges(test), (query) => edgeless.score(query), K);
  const learned = rankingOf(test, (query) => reranker.score(query), K);
  const orders = {
    similarity,
    'similarity × hop factor (current)': present,
    'attention without edges': plain,
    'graph attention': learned,
  };
  const rows = Object.entries(orders).map(([order, { mrr, ndcg }]) => ({ order, mrr: mean(mrr), ndcg: mean(ndcg) }));
  const world = {
    name,
    isSelected: next === 'trained',
    reason,
    numEpochs,
    rows,
    overSimilarity: pairedChange(similarity.ndcg, learned.ndcg),
    overPresent: pairedChange(present.ndcg, learned.ndcg),
    mrrOverSimilarity: pairedChange(similarity.mrr, learned.mrr),
    overSimilarityByIntent: clusteredChange(similarity.ndcg, learned.ndcg, test.map(({ intent }) => intent)), // prettier-ignore
    overNoEdges: pairedChange(plain.ndcg, learned.ndcg),
  };
  return { world, reranker };
}

function trainOn({ train, validation }: Pick<QueryParts, 'train' | 'validation'>, training = TRAINING) {
  const start = untrainedState(train[0]!.query.length, SEED);
  const { state, bestEpoch } = trainReranker(start, train, validation, { seed: SEED, ...training });
  return { reranker: createReranker(state), numEpochs: bestEpoch };
}

const withoutEdges = (queries: readonly Query[]): Query[] =>
  queries.map((query) => ({ ...query, candidates: query.candidates.map((one) => ({ ...one, edges: [] })) }));

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The same number of used documents, but others. */
export function shuffleUse(queries: readonly Query[], seed: number): Query[] {
  const random = createRandom(seed);
  return queries.map((query) => {
    const keys = query.used.map(() => random.next());
    const order = query.used.map((_, i) => i).sort((a, b) => keys[a]! - keys[b]!);
    return { ...query, used: order.map((i) => query.used[i]!) };
  });
}

/** Selection and test data stay true. */
const withShuffledUse = (parts: QueryParts): QueryParts => ({
  ...parts,
  train: shuffleUse(parts.train, SEED),
  validation: shuffleUse(parts.validation, SEED + 1),
});

export interface ShuffledGates {
  readonly numShuffles: number;
  /** Use is random in training and judging: everything accepted is wrong. */
  readonly numAccepted: number;
  /** The same with true judging data: accepted ones happen to rank better. */
  readonly numAcceptedByTruth: number;
  /** For both, accepted only by an interval over pairs. */
  readonly numAcceptedByPairs: number;
}

/** Like the whole, with a third of the queries and half the epochs: forty-eight trainings in about a minute. */
const SHUFFLES = { count: 24, training: { maxEpochs: 6, patience: 2 } };

/** How often the gate accepts training on random data. */
function countShuffles({ train, validation, selection }: QueryParts, log: (line: string) => void): ShuffledGates {
  const third = (queries: readonly Query[]): Query[] => queries.filter((_, i) => i % 3 === 0);
  const counts = { numShuffles: SHUFFLES.count, numAccepted: 0, numAcceptedByTruth: 0, numAcceptedByPairs: 0 };
  for (let seed = 0; seed < SHUFFLES.count; seed++) {
    if (seed % 8 === 0) log(`shuffle ${seed + 1} of ${SHUFFLES.count} …`);
    const tuned = shuffleUse(third(validation), 3 * seed + 101);
    const { reranker } = trainOn({ train: shuffleUse(third(train), 3 * seed + 100), validation: tuned }, SHUFFLES.training); // prettier-ignore
    const judge = (heldOut: readonly Query[]): boolean => {
      const { next } = selectReranker(reranker, { heldOut, tuned }, { k: K });
      const scoreBy = (scoresOf: (query: Query) => ArrayLike<number>) => rankingOf(heldOut, scoresOf as never, K).ndcg;
      const learned = scoreBy((query) => reranker.score(query));
      if ([similarityScores, presentScores].every((order) => pairedChange(scoreBy(order), learned).low > 0)) counts.numAcceptedByPairs++; // prettier-ignore
      return next === 'trained';
    };
    if (judge(shuffleUse(selection, 3 * seed + 102))) counts.numAccepted++;
    if (judge(selection)) counts.numAcceptedByTruth++;
  }
  return counts;
}

function measureSpeed(reranker: Reranker, queries: readonly Query[]): { scoreMs: number; scoreP99Ms: number } {
  const lists = queries.slice(0, 50).map(({ query, candidates }) => ({
    query,
    candidates: candidates.slice(0, SPEED_CANDIDATES).map(({ edges, ...fields }) => ({
      ...fields,
      edges: edges.filter(({ other }) => other < SPEED_CANDIDATES),
    })),
  }));
  const times: number[] = [];
  for (let i = 0; i < SPEED_RUNS; i++) {
    const list = lists[i % lists.length]!;
    const began = performance.now();
    reranker.score(list);
    times.push(performance.now() - began);
  }
  const warm = times.slice(SPEED_RUNS / 10).sort((a, b) => a - b);
  return { scoreMs: median(warm), scoreP99Ms: warm[Math.floor(warm.length * 0.99)]! };
}
