import { fillMemory } from '../../learning/evaluation/memory-recall.ts';
import { meanOf, type RelevantRanks } from '../../learning/evaluation/retrieval.ts';
import { openTransientMemory } from '../../node/memory/transient-memory.ts';
import type { CommandContext } from '../command.ts';
import { openBenchEmbedders } from './open-embedder.ts';
import { reportRetrieval } from './retrieval-report.ts';
import { readRetrievalSet } from './retrieval-set.ts';
import { collectFacts } from './run-facts.ts';

const TENANT = 'bench';
/** Results per search; recall beyond them counts as missed. */
const K = 20;

/** Measures how much evidence the search of a new, transient memory finds; the user's memory is not opened. */
export async function benchMemory(context: CommandContext): Promise<void> {
  const { io, output } = context;
  const { data, set } = await readRetrievalSet(context, 'memory');
  const facts = collectFacts(context, 'memory', data);
  const embedders = await openBenchEmbedders(context);
  try {
    const methods: Record<string, RelevantRanks[]> = { BM25: [] };
    const searchMs: number[] = [];
    for (const [name, embedder] of Object.entries(embedders.byName)) {
      const memory = await openTransientMemory(embedder, (message) => output.note(message));
      try {
        const filled = await fillMemory(memory, embedder, TENANT, set.texts);
        const search = name === 'vectors' ? 'memory search' : 'memory search, projected';
        [methods[name], methods[search]] = [[], []];
        for (const query of set.queries) {
          io.signal.throwIfAborted();
          const ranks = await filled.recall(query, K);
          if (name === 'vectors') methods['BM25']!.push(ranks.bm25);
          methods[name].push(ranks.vector);
          methods[search].push(ranks.hybrid);
          searchMs.push(ranks.searchMs);
        }
      } finally {
        await memory.close();
      }
    }
    reportRetrieval(context, facts, methods, {
      numTexts: set.texts.length,
      model: embedders.model,
      meanSearchMs: meanOf(searchMs),
    });
  } finally {
    await embedders.close();
  }
}
