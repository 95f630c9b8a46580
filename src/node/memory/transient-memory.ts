import { createHash, randomBytes } from 'node:crypto';
import { createUuidV7 } from '../../core/uuid.ts';
import type { Embedder } from '../../memory/embedder-types.ts';
import { type Memory, openMemory } from '../../memory/memory.ts';
import { createInMemoryStore } from '../../memory/store/in-memory/in-memory-store.ts';

/** A memory of this process alone: no file is read or written, and the caller closes the embedder. */
export function openTransientMemory(embedder: Embedder | null, report: (message: string) => void): Promise<Memory> {
  const shared = embedder === null ? null : withoutClose(embedder);
  return openMemory({
    store: createInMemoryStore({ now: Date.now }),
    services: {
      now: Date.now,
      newId: createUuidV7({ now: Date.now, randomBytes }),
      sha256: (bytes) => createHash('sha256').update(bytes).digest(),
    },
    schedule: () => () => {},
    embedder: shared,
    report,
  });
}

function withoutClose({ close: _, ...embedder }: Embedder): Embedder {
  return embedder;
}
