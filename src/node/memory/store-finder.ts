import { RuvLLMError } from '../../core/errors.ts';
import { createMemoryGraph } from '../../memory/graph/graph.ts';
import type { RemoteEmbedder, RemoteFinder } from '../../memory/remote/protocol.ts';
import { createAsk } from '../../memory/search/ask.ts';
import { createMemorySearch } from '../../memory/search/search.ts';
import type { MemoryStore } from '../../memory/types.ts';

/** The space name without a model; no record has it. */
const NO_SPACE = 'none';

/** Searches in the memory's thread. */
export async function createStoreFinder(store: MemoryStore, remote: RemoteEmbedder): Promise<RemoteFinder> {
  const described = await remote.describe();
  const embedder = {
    fingerprint: described?.fingerprint ?? NO_SPACE,
    dim: described?.dim ?? 0,
    embed: (text: string): Promise<Float32Array> => remote.embed(text),
  };
  const services = {
    now: Date.now,
    newId: (): never => {
      throw new RuvLLMError('internal', 'a search creates no records');
    },
    sha256: (): never => {
      throw new RuvLLMError('internal', 'a search hashes nothing');
    },
  };
  const graph = createMemoryGraph(store, services);
  const search = createMemorySearch({ store, services, graph, embedder });
  return { ...search, ask: createAsk({ store, search, embedder, now: () => performance.now() }) };
}
