import { RuvLLMError } from '../../core/errors.ts';
import { createMemoryGraph } from '../../memory/graph/graph.ts';
import type { RemoteFinder } from '../../memory/remote/protocol.ts';
import { createAsk } from '../../memory/search/ask.ts';
import { createMemorySearch } from '../../memory/search/search.ts';
import type { MemoryStore } from '../../memory/types.ts';

/** Searches in the memory's thread, by words and by the vectors it is given. */
export function createStoreFinder(store: MemoryStore): RemoteFinder {
  const embedder = null;
  const services = {
    now: Date.now,
    newId: (): never => {
      throw new RuvLLMError('internal', 'a search needs no ids');
    },
    sha256: (): never => {
      throw new RuvLLMError('internal', 'a search needs no hashes');
    },
  };
  const graph = createMemoryGraph(store, services);
  const search = createMemorySearch({ store, services, graph, embedder });
  return { ...search, ask: createAsk({ store, search, embedder, now: () => performance.now() }) };
}
