import { rankAtRandom, rankByVectors, rankByWords, type Ranking } from '../../learning/evaluation/rankings.ts';
import { ranksIn, type RelevantRanks } from '../../learning/evaluation/retrieval.ts';
import type { CommandContext } from '../command.ts';
import { embedAll, openBenchEmbedders } from './open-embedder.ts';
import { reportRetrieval } from './retrieval-report.ts';
import { readRetrievalSet } from './retrieval-set.ts';
import { collectFacts, readSeed } from './run-facts.ts';

/** Measures how well a model's embeddings find the relevant texts. */
export async function benchEmbeddings(context: CommandContext): Promise<void> {
  const { data, set } = await readRetrievalSet(context, 'embeddings');
  const facts = collectFacts(context, 'embeddings', data);
  const questions = set.queries.map(({ text }) => text);
  const toRanks = (ranking: Ranking): RelevantRanks[] =>
    ranking.map((order, i) => ranksIn(order, set.queries[i]!.relevant));
  const embedders = await openBenchEmbedders(context);
  try {
    const methods: Record<string, readonly RelevantRanks[]> = { BM25: toRanks(rankByWords(set.texts, questions)) };
    for (const [name, embedder] of Object.entries(embedders.byName)) {
      const vectors = await embedAll(context, embedder, [...set.texts, ...questions]);
      const numTexts = set.texts.length;
      methods[name] = toRanks(rankByVectors(vectors.slice(0, numTexts), vectors.slice(numTexts)));
    }
    methods['random order'] = toRanks(rankAtRandom(set.texts.length, questions.length, readSeed(context)));
    reportRetrieval(context, facts, methods, { numTexts: set.texts.length, model: embedders.model });
  } finally {
    await embedders.close();
  }
}
