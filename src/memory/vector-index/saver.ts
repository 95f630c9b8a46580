import type { BlockFile } from './block-file.ts';
import { type ColumnName, columnStrides } from './columns.ts';
import { type DirtyPages, PAGE_BYTES } from './dirty-pages.ts';
import type { Graph } from './graph.ts';
import { type PagesToWrite, type PagedName, readHeader, type SavedIndex, writeGeneration } from './index-file.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';
import type { SlotTable } from './slot-table.ts';
import type { SaveReport } from './types.ts';
import type { VectorSpace } from './vector-space.ts';

interface SaverParts {
  readonly options: ResolvedVectorIndexOptions;
  readonly space: () => VectorSpace;
  readonly slots: SlotTable;
  readonly graph: () => Graph | null;
  readonly waiting: () => readonly number[];
  readonly dirty: DirtyPages;
}

/** Saves an index incrementally. */
export interface Saver {
  save(file: BlockFile, seq: number): SaveReport;
  /** This file has the current state. */
  noteSaved(file: BlockFile, saved: SavedIndex): void;
}

export function createSaver({ options, space, slots, graph, waiting, dirty }: SaverParts): Saver {
  let known: { readonly file: BlockFile; readonly saved: SavedIndex } | null = null;

  const lastIn = (file: BlockFile): SavedIndex | null => {
    try {
      return readHeader(file);
    } catch {
      return null; // damaged: everything in it may be overwritten
    }
  };

  const columnPages = (name: ColumnName, isKnown: boolean): PagesToWrite => {
    const numRows = name === 'upper' ? (graph()?.upperEnd ?? 0) : slots.end;
    const bytes = space()
      .bytesOf(name)
      .subarray(0, columnStrides(options, space().hasGraph)[name] * numRows);
    return {
      numPages: Math.ceil(bytes.length / PAGE_BYTES),
      bytesOf: (page) =>
        isKnown && !dirty.isDirty(name, page) ? null : bytes.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES),
    };
  };

  return {
    save(file, seq) {
      const last = known?.file === file ? known.saved : null;
      const isKnown = last !== null;
      // A failed save may have written its header: the next one must read which generation is the newest and keep its pages.
      known = null;
      const { dim, metric, storage, keepsExact, m } = options;
      const { entry = -1, topLevel = 0, upperEnd = 0 } = graph() ?? {};
      const twins = slots.exportTwins();
      const extra = Float64Array.from([twins.length, ...twins, ...waiting()]);
      const extraBytes = new Uint8Array(extra.buffer);
      const extraPages: PagesToWrite = {
        numPages: Math.ceil(extraBytes.length / PAGE_BYTES),
        bytesOf: (page) => extraBytes.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES),
      };
      const { saved, blocksWritten } = writeGeneration(
        file,
        last ?? lastIn(file),
        {
          dim,
          metric,
          storage,
          keepsExact,
          m,
          hasGraph: graph() !== null,
          seq,
          end: slots.end,
          upperEnd,
          entry,
          topLevel,
          numExtra: extra.length,
        },
        (name: PagedName) => (name === 'extra' ? extraPages : columnPages(name, isKnown)),
      );
      known = { file, saved };
      dirty.clear();
      return { generation: saved.header.generation, blocksWritten };
    },
    noteSaved(file, saved) {
      known = { file, saved };
    },
  };
}
