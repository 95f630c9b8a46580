import type { KeyObject } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { PageTier, SpillStats } from '../../../kv-cache/types.ts';
import { errnoOf } from '../files/file-errors.ts';
import { readWhole, replaceFile, type Files } from '../sealing/atomic-files.ts';
import { createPageIndex } from './page-index.ts';
import { openFile, OVERHEAD_BYTES, sealFile } from '../sealing/sealed-file.ts';

/** Many times the page of the largest models: no file makes us allocate more. */
const MAX_PAGE_BYTES = 2 ** 28;
/** The number in the header of a page is the place in this list. */
const TIERS: readonly PageTier[] = ['float', 'packed'];
/** Another process on the same folder is noticed when this part of the limit was written: so far the two can overrun it. */
const SCAN_PART = 1 / 8;
const NO_SPACE = new Set(['ENOSPC', 'EDQUOT']);

/** One page: `<tenant>/<model>/<key>`, and what seals it. */
export interface PageRef {
  readonly id: string;
  readonly key: string;
  readonly sealing: KeyObject;
}

export interface PageStoreOptions {
  readonly files: Files;
  readonly root: string;
  readonly limitBytes: number;
  /** Hears once of each kind of failure. */
  readonly warn: (message: string) => void;
}

/** Sealed pages below one folder, never more than the limit, the longest unused dropped first. */
export interface PageStore {
  /** `<tenant>/<model>` → number of pages. */
  readonly groups: ReadonlyMap<string, number>;
  scan(): void;
  has(id: string): boolean;
  write(page: PageRef, tier: PageTier, bytes: Uint8Array): boolean;
  read(page: PageRef): { readonly tier: PageTier; readonly bytes: Uint8Array } | null;
  /** Deletes the pages of a tenant; throws what the disk says. */
  removeTenant(tenantId: string): void;
  /** Files below the tenant's folder, also those that the index does not know. */
  countTenant(tenantId: string): number;
  /** Counts a write that was not even tried. */
  refuse(reason: string): false;
  /** Something else than a write went wrong. */
  report(reason: string): void;
  stats(): Omit<SpillStats, 'ignored'>;
}

export function createPageStore({ files, root, limitBytes, warn }: PageStoreOptions): PageStore {
  const index = createPageIndex(files, root);
  const counts = { numWrites: 0, numReads: 0, numEvictions: 0, numCorrupt: 0, numFailedWrites: 0 };
  const warned = new Set<string>();
  let lastFailure: string | null = null;
  let unscannedBytes = 0;
  let scratch = new Uint8Array(0);

  function report(reason: string): void {
    lastFailure = reason;
    if (!warned.has(reason)) warn(reason);
    warned.add(reason);
  }

  function refuse(reason: string): false {
    counts.numFailedWrites++;
    report(reason);
    return false;
  }

  /** False when the file is still there. */
  function remove(id: string, doing: string): boolean {
    try {
      files.rmSync(index.pathOf(id), { force: true });
    } catch (error) {
      report(describe(doing, error));
      return false;
    }
    index.remove(id);
    removeEmptyFolders(index.pathOf(id));
    return true;
  }

  /** Those of tenants and models without pages: every scan would look through them for ever. */
  function removeEmptyFolders(path: string): void {
    try {
      for (let folder = dirname(path); folder !== root; folder = dirname(folder)) files.rmdirSync(folder);
    } catch {
      // Not empty, mostly.
    }
  }

  function evictUntil(isEnough: () => boolean, exceptId: string | null): boolean {
    while (!isEnough()) {
      const id = index.oldest(exceptId);
      if (id === null || !remove(id, 'dropping the longest unused page')) return false;
      counts.numEvictions++;
    }
    return true;
  }

  const makeRoom = (sizeBytes: number, id: string | null): boolean =>
    evictUntil(() => index.sizeBytes - (id === null ? 0 : index.sizeOf(id)) + sizeBytes <= limitBytes, id);

  function scan(): void {
    unscannedBytes = 0;
    index.scan(report);
    makeRoom(0, null);
  }

  /** Gives up as much as is needed, twice (a file takes more of a disk than it has bytes): false when that is not there. */
  function yieldSpace(sizeBytes: number, id: string): boolean {
    const goalBytes = index.sizeBytes - 2 * sizeBytes;
    const numBefore = index.numPages;
    evictUntil(() => index.sizeBytes <= goalBytes, id);
    return index.numPages < numBefore;
  }

  /**
   * Without a flush: this is a cache. After a power failure a page may be empty or have holes; its tag says so, and it is computed
   * again. After the death of the process alone all is there that was renamed.
   */
  function put(path: string, parts: readonly Uint8Array[], yieldOnce: () => boolean): void {
    try {
      replaceFile(files, path, parts, false);
    } catch (error) {
      if (!NO_SPACE.has(errnoOf(error) ?? '') || !yieldOnce()) throw error;
      replaceFile(files, path, parts, false);
    }
  }

  function write({ id, key, sealing }: PageRef, tier: PageTier, bytes: Uint8Array): boolean {
    const sizeBytes = bytes.length + OVERHEAD_BYTES;
    const mostBytes = Math.min(limitBytes, MAX_PAGE_BYTES + OVERHEAD_BYTES);
    if (sizeBytes > mostBytes) return refuse(`a page takes ${sizeBytes} bytes, at most ${mostBytes} are allowed`);
    if (!makeRoom(sizeBytes, id)) {
      counts.numFailedWrites++;
      return false;
    }
    try {
      const parts = sealFile({ kind: 'page', key: sealing, name: key }, TIERS.indexOf(tier), bytes);
      put(index.pathOf(id), parts, () => yieldSpace(sizeBytes, id));
    } catch (error) {
      return refuse(describe('writing a page', error));
    }
    index.put(id, sizeBytes);
    counts.numWrites++;
    unscannedBytes += sizeBytes;
    if (unscannedBytes > limitBytes * SCAN_PART) scan();
    return true;
  }

  function readFile(id: string): Uint8Array | null {
    const sizeBytes = index.sizeOf(id);
    if (sizeBytes > scratch.length && sizeBytes <= MAX_PAGE_BYTES + OVERHEAD_BYTES) scratch = new Uint8Array(sizeBytes);
    return readWhole(files, index.pathOf(id), MAX_PAGE_BYTES + OVERHEAD_BYTES, { scratch, isTouched: true });
  }

  function read({ id, key, sealing }: PageRef): { tier: PageTier; bytes: Uint8Array } | null {
    if (!index.has(id)) return null;
    let file: Uint8Array | null;
    try {
      file = readFile(id);
    } catch (error) {
      // Another process may have dropped it. What cannot be read stays counted, for it takes room.
      if (errnoOf(error) === 'ENOENT') index.remove(id);
      else index.setUnreadable(id);
      report(describe('reading a page', error));
      return null;
    }
    const page = file && openFile({ kind: 'page', key: sealing, name: key }, file);
    const tier = page && TIERS[page.variant];
    if (page === null || tier === undefined || tier === null) {
      counts.numCorrupt++;
      index.setUnreadable(id);
      remove(id, 'dropping a damaged page');
      return null;
    }
    counts.numReads++;
    index.put(id, page.bytes.length + OVERHEAD_BYTES);
    return { tier, bytes: page.bytes };
  }

  return {
    groups: index.groups,
    scan,
    has: (id) => index.has(id),
    write,
    read,
    removeTenant(tenantId) {
      files.rmSync(join(root, tenantId), { recursive: true, force: true });
      index.removeTenant(tenantId);
    },
    countTenant(tenantId) {
      const path = join(root, tenantId);
      if (!files.existsSync(path)) return 0;
      return files.readdirSync(path, { recursive: true }).filter((name) => String(name).endsWith('.page')).length;
    },
    refuse,
    report,
    stats: () => ({ numPages: index.numPages, sizeBytes: index.sizeBytes, limitBytes, ...counts, lastFailure }),
  };
}

function describe(doing: string, error: unknown): string {
  return `${doing}: ${errnoOf(error) ?? 'unknown error'}`;
}
