import { createHash, randomBytes } from 'node:crypto';
import { createUuidV7 } from '../../src/core/uuid.ts';
import type { Embedder } from '../../src/memory/embedder-types.ts';
import { type Memory, type MemoryOptions, openMemory } from '../../src/memory/memory.ts';
import { createInMemoryStore } from '../../src/memory/store/in-memory/in-memory-store.ts';
import type { MemoryStore } from '../../src/memory/types.ts';

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();
const DIM = 64;

/** Words as directions: texts with common words are similar. */
export const wordEmbedder: Embedder = {
  fingerprint: 'words-1',
  dim: DIM,
  embed(text) {
    const vector = new Float32Array(DIM);
    for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
      vector[sha256(new TextEncoder().encode(word))[0]! % DIM]! += 1;
    }
    const norm = Math.hypot(...vector);
    return vector.map((value, i) => (norm === 0 ? Number(i === 0) : value / norm));
  },
};

export interface TestMemory extends Memory {
  readonly reports: string[];
}

/** A memory in this process that writes its audit log on request. */
export async function openTestMemory(
  options: MemoryOptions & {
    embedder?: Embedder | null;
    store?: MemoryStore;
    now?: () => number;
    isShared?: boolean;
  } = {},
): Promise<TestMemory> {
  const { embedder = wordEmbedder, now = Date.now, store = createInMemoryStore({ now }), isShared = false, ...rest } = options; // prettier-ignore
  const reports: string[] = [];
  const memory = await openMemory({
    store,
    services: { now, newId: createUuidV7({ now, randomBytes }), sha256 },
    schedule: () => () => {},
    embedder,
    isShared,
    report: (message) => void reports.push(message),
    options: rest,
  });
  return Object.defineProperties({ reports } as TestMemory, Object.getOwnPropertyDescriptors(memory));
}
