import { createHash, randomBytes } from 'node:crypto';
import type { Embedder } from '../../../src/memory/embedder-types.ts';
import type { Memory } from '../../../src/memory/memory.ts';
import { importBuilt } from '../../support/dist.ts';

const { openMemory } = await importBuilt<typeof import('../../../src/memory/memory.ts')>('memory/memory');
const { createInMemoryStore } = await importBuilt<typeof import('../../../src/memory/store/in-memory/in-memory-store.ts')>('memory/store/in-memory/in-memory-store'); // prettier-ignore
const { createUuidV7 } = await importBuilt<typeof import('../../../src/core/uuid.ts')>('core/uuid');
const { openModelEmbedder } = await importBuilt<typeof import('../../../src/node/memory/model-embedder.ts')>('node/memory/model-embedder'); // prettier-ignore
const { findEncoder } = await importBuilt<typeof import('../../../src/node/memory/find-encoder.ts')>('node/memory/find-encoder'); // prettier-ignore

/** The default encoder; each text is embedded once. */
export async function openEmbedder(): Promise<Embedder> {
  const inner = openModelEmbedder(await findEncoder());
  const vectors = new Map<string, Promise<Float32Array>>();
  return {
    fingerprint: inner.fingerprint,
    dim: inner.dim,
    async embed(text) {
      const cached = vectors.get(text) ?? Promise.resolve(inner.embed(text));
      vectors.set(text, cached);
      return (await cached).slice();
    },
    close: async () => inner.close?.(),
  };
}

/** A clock that the bench moves, so that conversations last for days. */
export interface BenchClock {
  timeMs: number;
}

/** Runs with a new memory in this process. */
export async function withMemory<T>(
  embedder: Embedder,
  run: (memory: Memory, clock: BenchClock) => Promise<T>,
): Promise<T> {
  const clock = { timeMs: Date.UTC(2026, 0, 1, 8) };
  const now = (): number => clock.timeMs;
  const { close: _, ...shared } = embedder; // closed by its opener, not with each memory
  const memory = await openMemory({
    store: createInMemoryStore({ now }),
    services: {
      now,
      newId: createUuidV7({ now, randomBytes }),
      sha256: (bytes) => createHash('sha256').update(bytes).digest(),
    },
    schedule: () => () => {},
    embedder: shared,
    report: console.error,
  });
  try {
    return await run(memory, clock);
  } finally {
    await memory.close();
  }
}
