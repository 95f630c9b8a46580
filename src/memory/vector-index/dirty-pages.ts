import type { ColumnName } from './columns.ts';

/** Unit of saving. */
export const PAGE_BYTES = 1 << 18;

/** Pages changed since the last save, by column. */
export interface DirtyPages {
  /** Row `index` of a column was written. */
  mark(column: ColumnName, index: number): void;
  isDirty(column: ColumnName, page: number): boolean;
  clear(): void;
}

export function createDirtyPages(strideOf: (column: ColumnName) => number): DirtyPages {
  const pages = new Map<ColumnName, Uint8Array>();
  const flagsFor = (column: ColumnName, page: number): Uint8Array => {
    const flags = pages.get(column) ?? new Uint8Array(64);
    if (page < flags.length) {
      pages.set(column, flags);
      return flags;
    }
    const larger = new Uint8Array(Math.max(2 * flags.length, page + 1));
    larger.set(flags);
    pages.set(column, larger);
    return larger;
  };
  return {
    mark(column, index) {
      const stride = strideOf(column);
      if (stride === 0) return;
      const first = Math.floor((index * stride) / PAGE_BYTES);
      const last = Math.floor(((index + 1) * stride - 1) / PAGE_BYTES);
      const flags = flagsFor(column, last);
      for (let page = first; page <= last; page++) flags[page] = 1;
    },
    isDirty: (column, page) => pages.get(column)?.[page] === 1,
    clear: () => pages.clear(),
  };
}
