import { decodeNamespace, namespaceId } from '../../src/kv-cache/cache-namespace.ts';
import type { PageTier, SpillStats, SpillStore } from '../../src/kv-cache/types.ts';

/** A spill folder without a disk: outlives the engines that use it, and fails on demand. */
export interface MemorySpill {
  /** Like a process that opens the folder: counters restart, pages remain. */
  open(): SpillStore;
  /** Keys are the namespace and then the tokens of each page, so tests can see what is kept for whom. */
  readonly pages: Map<string, { tier: PageTier; bytes: Uint8Array; isCorrupt: boolean }>;
  /** A full disk. */
  refusesWrites: boolean;
}

export function createMemorySpill(limitPages = Infinity): MemorySpill {
  const pages: MemorySpill['pages'] = new Map();
  const keysOf = (tenant: string): string[] =>
    [...pages.keys()].filter((key) => decodeNamespace(key.slice(0, key.indexOf('/')))?.tenant === tenant);
  const spill: MemorySpill = {
    pages,
    refusesWrites: false,
    open() {
      const counts = { numWrites: 0, numReads: 0, numEvictions: 0, numCorrupt: 0, numFailedWrites: 0 };
      const stats = (): SpillStats => ({
        ...counts,
        numPages: pages.size,
        sizeBytes: [...pages.values()].reduce((sum, { bytes }) => sum + bytes.length, 0),
        limitBytes: Infinity,
        lastFailure: counts.numFailedWrites > 0 ? 'no space left on device' : null,
        ignored: [],
      });
      return {
        open: (namespace) => ({
          rootKey: namespaceId(namespace),
          childKey: (parentKey, tokens) => `${parentKey}/${Array.from(tokens).join(' ')}`,
          has: (key) => pages.has(key),
          write(key, tier, bytes) {
            if (spill.refusesWrites) {
              counts.numFailedWrites++;
              return false;
            }
            counts.numWrites++;
            pages.set(key, { tier, bytes: bytes.slice(), isCorrupt: false });
            for (const oldest of pages.keys()) {
              if (pages.size <= limitPages) break;
              pages.delete(oldest);
              counts.numEvictions++;
            }
            return true;
          },
          read(key) {
            const page = pages.get(key);
            if (page === undefined) return null;
            if (page.isCorrupt) {
              counts.numCorrupt++;
              pages.delete(key);
              return null;
            }
            counts.numReads++;
            return { tier: page.tier, bytes: page.bytes.slice() };
          },
        }),
        eraseTenant(tenant) {
          for (const key of keysOf(tenant)) pages.delete(key);
        },
        numPagesOf: (tenant) => keysOf(tenant).length,
        stats,
        close() {},
      };
    },
  };
  return spill;
}
