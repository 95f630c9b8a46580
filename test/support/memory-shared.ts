import { namespaceId } from '../../src/kv-cache/cache-namespace.ts';
import type { SharedStore } from '../../src/kv-cache/shared-store.ts';
import type { PageTier } from '../../src/kv-cache/types.ts';

/** Storage that several nodes share, without a network. */
export interface MemoryShared {
  open(): SharedStore;
  /** By namespace and the tokens of each page. */
  readonly pages: Map<string, { tier: PageTier; bytes: Uint8Array }>;
  /** Neither read nor written. */
  isAway: boolean;
  /** Reads after this many never end. */
  holdsAfter: number;
  /** Called for each read. */
  onRead: () => void;
  /** Resolves when all calls so far have ended. */
  settled(): Promise<void>;
}

export function createMemoryShared(): MemoryShared {
  const pages: MemoryShared['pages'] = new Map();
  const shared: MemoryShared = {
    pages,
    isAway: false,
    holdsAfter: Infinity,
    onRead() {},
    settled: () => new Promise((resolve) => setImmediate(resolve)),
    open() {
      const known = new Set<string>();
      const counts = { numHits: 0, readBytes: 0, readMs: 0, numMisses: 0, numCorrupt: 0, numFailedReads: 0, numWrites: 0, writtenBytes: 0, writeMs: 0, numFailedWrites: 0, numEvictions: 0 }; // prettier-ignore
      let numReads = 0;
      return {
        get canRead() {
          return !shared.isAway;
        },
        get canWrite() {
          return !shared.isAway;
        },
        open: (namespace) => ({
          rootKey: namespaceId(namespace),
          childKey: (parentKey, tokens) => `${parentKey}/${Array.from(tokens).join(' ')}`,
          isStored: (key) => known.has(key),
          async write(key, tier, bytes) {
            known.add(key);
            pages.set(key, { tier, bytes: bytes.slice() });
            counts.numWrites++;
            return true;
          },
          async read(key) {
            shared.onRead();
            if (++numReads > shared.holdsAfter) return new Promise<never>(() => {});
            const page = pages.get(key);
            if (page === undefined) counts.numMisses++;
            else counts.numHits++;
            return page ?? null;
          },
        }),
        stats: () => ({
          ...counts,
          sizeBytes: null,
          limitBytes: Infinity,
          lastFailure: null,
          isReadSuspended: shared.isAway,
          isWriteSuspended: shared.isAway,
        }),
        close: () => Promise.resolve(),
      };
    },
  };
  return shared;
}
