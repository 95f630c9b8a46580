import { join } from 'node:path';
import { errnoOf } from '../files/file-errors.ts';
import { listNames, removeAbandoned, statQuietly, type Files } from '../sealing/atomic-files.ts';

interface StoredPage {
  sizeBytes: number;
  /** False once it could not be read: it counts until it is dropped or written again. */
  isReadable: boolean;
}

/**
 * Which pages are in a folder, without asking it: `<tenant>/<model>/<key>` → size, the longest unused first. Names are all there
 * is to know; the folder itself is the index.
 */
export interface PageIndex {
  readonly numPages: number;
  readonly sizeBytes: number;
  /** `<tenant>/<model>` → number of pages. */
  readonly groups: ReadonlyMap<string, number>;
  has(id: string): boolean;
  sizeOf(id: string): number;
  /** A page that was written or used just now. */
  put(id: string, sizeBytes: number): void;
  setUnreadable(id: string): void;
  remove(id: string): void;
  removeTenant(tenantId: string): void;
  oldest(exceptId: string | null): string | null;
  pathOf(id: string): string;
  /** Takes in what others have written or removed since, and removes what killed processes have left. */
  scan(onFailure: (reason: string) => void): void;
}

const ID = /^[0-9a-f]{32}$/;
const SHARD = /^[0-9a-f]{2}$/;
const PAGE = /^([0-9a-f]{64})\.page$/;

const groupOf = (id: string): string => id.slice(0, id.lastIndexOf('/'));

/** The pages below `root`, at `<tenant>/<model>/<two digits of the key>/<key>.page`. */
export function createPageIndex(files: Files, root: string): PageIndex {
  const pages = new Map<string, StoredPage>();
  const groups = new Map<string, number>();
  let sizeBytes = 0;

  function pathOf(id: string): string {
    const key = id.slice(id.lastIndexOf('/') + 1);
    return join(root, groupOf(id), key.slice(0, 2), `${key}.page`);
  }

  function remove(id: string): void {
    const page = pages.get(id);
    if (page === undefined) return;
    pages.delete(id);
    sizeBytes -= page.sizeBytes;
    const group = groupOf(id);
    const numLeft = groups.get(group)! - 1;
    if (numLeft === 0) groups.delete(group);
    else groups.set(group, numLeft);
  }

  function put(id: string, pageBytes: number): void {
    remove(id); // a Map keeps the order of insertion: the page is now the last to go
    pages.set(id, { sizeBytes: pageBytes, isReadable: true });
    sizeBytes += pageBytes;
    groups.set(groupOf(id), (groups.get(groupOf(id)) ?? 0) + 1);
  }

  function* folders(onFailure: (reason: string) => void): Iterable<{ group: string; folder: string; names: string[] }> {
    const list = (folder: string): string[] => {
      try {
        return listNames(files, folder);
      } catch (error) {
        onFailure(`listing a folder: ${errnoOf(error) ?? 'unknown error'}`);
        return [];
      }
    };
    for (const tenant of list(root).filter((name) => ID.test(name))) {
      for (const model of list(join(root, tenant)).filter((name) => ID.test(name))) {
        const group = `${tenant}/${model}`;
        for (const shard of list(join(root, group)).filter((name) => SHARD.test(name))) {
          const folder = join(root, group, shard);
          yield { group, folder, names: list(folder) };
        }
      }
    }
  }

  function scan(onFailure: (reason: string) => void): void {
    const found = new Set<string>();
    const fresh: { id: string; sizeBytes: number; usedMs: number }[] = [];
    for (const { group, folder, names } of folders(onFailure)) {
      removeAbandoned(files, folder, names);
      for (const name of names) {
        const key = PAGE.exec(name)?.[1];
        if (key === undefined || !folder.endsWith(key.slice(0, 2))) continue;
        const id = `${group}/${key}`;
        found.add(id);
        if (pages.has(id)) continue;
        const stat = statQuietly(files, join(folder, name));
        if (stat?.isFile() === true) fresh.push({ id, sizeBytes: stat.size, usedMs: stat.mtimeMs });
      }
    }
    for (const id of pages.keys()) if (!found.has(id)) remove(id);
    for (const page of fresh.sort((a, b) => a.usedMs - b.usedMs)) put(page.id, page.sizeBytes);
  }

  return {
    get numPages() {
      return pages.size;
    },
    get sizeBytes() {
      return sizeBytes;
    },
    groups,
    has: (id) => pages.get(id)?.isReadable === true,
    sizeOf: (id) => pages.get(id)?.sizeBytes ?? 0,
    put,
    setUnreadable(id) {
      const page = pages.get(id);
      if (page !== undefined) page.isReadable = false;
    },
    remove,
    removeTenant(tenantId) {
      for (const id of pages.keys()) if (id.startsWith(`${tenantId}/`)) remove(id);
    },
    oldest(exceptId) {
      for (const id of pages.keys()) if (id !== exceptId) return id;
      return null;
    },
    pathOf,
    scan,
  };
}
