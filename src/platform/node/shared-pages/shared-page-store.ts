import { systemClock, within } from '../../../core/clock.ts';
import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import type { CacheNamespace } from '../../../kv-cache/cache-namespace.ts';
import { type SharedSpace, type SharedStore, TOO_LATE } from '../../../kv-cache/shared-store.ts';
import type { PageTier } from '../../../kv-cache/types.ts';
import { errnoOf } from '../files/file-errors.ts';
import { openFile, OVERHEAD_BYTES, sealFile } from '../sealing/sealed-file.ts';
import { createChildKeys, createRootKey } from '../spill/page-keys.ts';
import { createBreaker } from './breaker.ts';
import type { ObjectStore } from './object-store.ts';
import { openSharedKeys } from './shared-keys.ts';

export interface SharedPageStoreOptions {
  readonly objects: ObjectStore;
  /** 32 bytes, the same at all nodes. */
  readonly masterKey: Uint8Array;
  /** Of all pages in the storage together. */
  readonly limitBytes: number;
  /** The longest a read takes. */
  readonly timeoutMs: number;
  /** Called once for each kind of failure. */
  readonly warn: (message: string) => void;
  readonly now?: () => number;
}

const TIERS: readonly PageTier[] = ['float', 'packed'];
const PAGE_NAME = /^v1\/[0-9a-f]{32}\/[0-9a-f]{32}\/[0-9a-f]{2}\/[0-9a-f]{64}\.page$/;
/** Nobody waits for writes, deletions and lists. */
const WRITE_TIMEOUT_MS = 15_000;
/** How long the end of a process waits for deletions. */
const CLOSE_MS = 3000;
/** Names known to be stored: about 10 MB. */
const MAX_KNOWN = 1 << 16;
/** A node lists the storage when it has written this part of the limit. */
const LIST_PART = 1 / 8;

/** Sealed pages as objects named by a keyed hash of all tokens up to their end. */
export function openSharedPages(options: SharedPageStoreOptions): SharedStore {
  const { objects, limitBytes, timeoutMs, warn, now = () => performance.now() } = options;
  const keys = openSharedKeys(options.masterKey);
  const reads = createBreaker(now);
  const writes = createBreaker(now);
  const known = new Set<string>();
  const pending = new Set<string>();
  const closing = new AbortController();
  const warned = new Set<string>();
  const counts = { numHits: 0, readBytes: 0, readMs: 0, numMisses: 0, numCorrupt: 0, numFailedReads: 0, numWrites: 0, writtenBytes: 0, writeMs: 0, numFailedWrites: 0, numEvictions: 0 }; // prettier-ignore
  let lastFailure: string | null = null;
  let sizeBytes: number | null = null;
  let unlistedBytes = Infinity;
  let trimming: Promise<void> | null = null;

  function report(doing: string, error: unknown): void {
    const reason = `${doing}: ${describe(error)}`;
    lastFailure = reason;
    if (!warned.has(reason)) warn(reason);
    warned.add(reason);
  }

  function remember(name: string): void {
    known.add(name);
    for (const oldest of known) {
      if (known.size <= MAX_KNOWN) break;
      known.delete(oldest);
    }
  }

  const longSignal = (): AbortSignal => AbortSignal.any([closing.signal, AbortSignal.timeout(WRITE_TIMEOUT_MS)]);

  function dropDamaged(name: string): void {
    known.delete(name);
    counts.numCorrupt++;
    report('reading a shared page', new RuvLLMError('io', 'it is damaged or not one of this fleet; it was deleted'));
    objects.delete(name, longSignal()).catch((error: unknown) => report('deleting a damaged shared page', error));
  }

  /** Deletes the oldest pages beyond the limit. Nodes that do so at the same time delete the same ones. */
  async function trim(): Promise<void> {
    unlistedBytes = 0;
    try {
      const pages = (await objects.list('v1/', longSignal())).filter(({ name }) => PAGE_NAME.test(name));
      let total = pages.reduce((sum, page) => sum + page.sizeBytes, 0);
      for (const page of pages.toSorted((a, b) => a.writtenMs - b.writtenMs)) {
        if (total <= limitBytes) break;
        await objects.delete(page.name, longSignal());
        known.delete(page.name);
        counts.numEvictions++;
        total -= page.sizeBytes;
      }
      sizeBytes = total + unlistedBytes;
    } catch (error) {
      if (!closing.signal.aborted) report('listing the shared pages', error);
    }
  }

  /** Pages that are written meanwhile may exceed the limit again. */
  async function trimUntilListed(partBytes: number): Promise<void> {
    while (unlistedBytes > partBytes && !closing.signal.aborted) await trim();
    trimming = null;
  }

  function countWrite(numBytes: number): void {
    counts.numWrites++;
    counts.writtenBytes += numBytes;
    if (sizeBytes !== null) sizeBytes += numBytes;
    unlistedBytes += numBytes;
    if (unlistedBytes > limitBytes * LIST_PART) trimming ??= trimUntilListed(limitBytes * LIST_PART);
  }

  function open(namespace: CacheNamespace): SharedSpace {
    const { naming, sealing } = keys.tenantKeys(namespace.tenant);
    const folder = keys.folderOfModel(namespace.tenant, namespace.modelHash);
    const nameOf = (key: string): string => `${folder}${key.slice(0, 2)}/${key}.page`;

    async function put(key: string, tier: PageTier, bytes: Uint8Array): Promise<boolean> {
      const name = nameOf(key);
      const startMs = now();
      try {
        if (!(await objects.has(name, longSignal()))) {
          const file = Buffer.concat(sealFile({ kind: 'page', key: sealing, name: key }, TIERS.indexOf(tier), bytes));
          if (file.length > limitBytes) throw new RuvLLMError('limit_exceeded', `it has ${file.length} bytes, the limit is ${limitBytes}`); // prettier-ignore
          await objects.put(name, file, longSignal());
          counts.writeMs += now() - startMs;
          countWrite(file.length);
        }
        writes.onSuccess();
        remember(name);
        return true;
      } catch (error) {
        counts.numFailedWrites++;
        writes.onFailure();
        report('writing a shared page', error);
        return false;
      }
    }

    return {
      rootKey: createRootKey(naming, namespace),
      childKey: createChildKeys(naming),
      isStored: (key) => known.has(nameOf(key)) || pending.has(nameOf(key)),
      async write(key, tier, bytes) {
        const name = nameOf(key);
        if (known.has(name)) return true;
        if (pending.has(name) || writes.isOpen || closing.signal.aborted) return false;
        pending.add(name);
        try {
          return await put(key, tier, bytes);
        } finally {
          pending.delete(name);
        }
      },
      async read(key, maxBytes, signal) {
        if (reads.isOpen || signal.aborted) return null;
        const name = nameOf(key);
        const startMs = now();
        let file: Uint8Array | null;
        try {
          const limits = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
          file = await objects.get(name, maxBytes + OVERHEAD_BYTES, limits);
        } catch (error) {
          if (signal.aborted && signal.reason !== TOO_LATE) return null;
          counts.numFailedReads++;
          reads.onFailure();
          report('reading a shared page', error);
          return null;
        }
        reads.onSuccess();
        if (file === null) {
          counts.numMisses++;
          known.delete(name);
          return null;
        }
        const page = openFile({ kind: 'page', key: sealing, name: key }, file);
        const tier = page && TIERS[page.variant];
        if (page === null || tier === undefined || tier === null) {
          dropDamaged(name);
          return null;
        }
        counts.numHits++;
        counts.readBytes += file.length;
        counts.readMs += now() - startMs;
        remember(name);
        return { tier, bytes: page.bytes };
      },
    };
  }

  return {
    get canRead() {
      return !reads.isOpen;
    },
    get canWrite() {
      return !writes.isOpen;
    },
    open,
    stats: () => ({
      ...counts,
      sizeBytes,
      limitBytes,
      lastFailure,
      isReadSuspended: reads.isOpen,
      isWriteSuspended: writes.isOpen,
    }),
    async close() {
      if (counts.numWrites > 0 && !writes.isOpen) {
        await within(
          systemClock,
          CLOSE_MS,
          (trimming ?? Promise.resolve()).then(() => trimUntilListed(0)),
        );
      }
      closing.abort();
    },
  };
}

/** Without paths and addresses: the reason goes into logs and metrics. */
function describe(error: unknown): string {
  if (error instanceof RuvLLMError) return error.message;
  if (error === TOO_LATE) return TOO_LATE;
  if (error instanceof Error && error.name === 'TimeoutError') return 'it took too long';
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return errnoOf(cause) ?? errnoOf(error) ?? messageOf(error);
}
