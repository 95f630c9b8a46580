import { createLexicalIndex, type LexicalIndex, type RowTest } from '../lexical/lexical-index.ts';
import { type LexicalHit, type LexicalQuery, searchLexical } from '../lexical/search-lexical.ts';
import type { RecordKind } from '../types.ts';
import type { Tenant } from './sealer.ts';
import { messageOf } from '../../core/errors.ts';

/** The texts of one tenant and kind. */
export interface LexicalSetRef {
  readonly tenant: Tenant;
  readonly kind: RecordKind;
}

/** Saved indexes; the rows of the store stay authoritative. */
export interface LexicalFiles {
  /** Null: none that can be used. */
  load(set: LexicalSetRef): { readonly index: LexicalIndex; readonly seq: number } | null;
  /** The index has all changes up to `seq`. */
  save(set: LexicalSetRef, index: LexicalIndex, seq: number): void;
  removeTenant(tenantId: string): void;
}

/** The rows of the indexes. */
export interface LexicalRows {
  /** Of the last durable write. */
  lastSeq(): number;
  /** Resolves when everything committed is on disk. */
  flush(): Promise<void>;
  /** All rows of a set with their last write. */
  list(set: LexicalSetRef): readonly { readonly row: number; readonly seq: number }[];
  /** The texts of those rows that still exist. */
  read(set: LexicalSetRef, rows: readonly number[]): Iterable<{ readonly row: number; readonly text: string }>;
}

interface LexicalSetsOptions {
  /** Null: indexes are built on first use. */
  readonly files: LexicalFiles | null;
  readonly rows: LexicalRows;
  /** Ends a turn, so that building a large index lets other calls pass. */
  readonly defer: (run: () => void) => void;
  /** Called when an index could not be saved or read. */
  readonly report: (message: string) => void;
  /** Of all open indexes together; the least recently searched are closed. Default 256 MiB. */
  readonly maxBytes?: number;
  /** Changes after which an index is saved. Default 5000. */
  readonly saveEvery?: number;
}

export interface LexicalSets {
  search(
    sets: readonly { readonly set: LexicalSetRef; readonly filter: RowTest | null }[],
    query: LexicalQuery,
    k: number,
  ): Promise<readonly LexicalHit[]>;
  /** After a commit: the text of a row was written, or (null) removed. Later searches see it. */
  apply(tenantNo: number, kind: RecordKind, row: number, text: (() => string) | null): void;
  /** Compares an open index with the rows; null: not open. */
  compare(set: LexicalSetRef): { readonly size: number; readonly missing: number; readonly numRows: number } | null;
  removeTenant(tenantId: string): Promise<void>;
  close(): Promise<void>;
}

interface OpenSet {
  readonly set: LexicalSetRef;
  readonly index: LexicalIndex;
  numUnsaved: number;
  isSaving: boolean;
}

/** Changes of a set during its loading, the last of each row. */
type Changes = Map<number, (() => string) | null>;

/** Rows opened in one turn while an index is built: about 10 ms. */
const ROWS_PER_TURN = 250;

/** The lexical indexes of a store, opened by the first search. */
export function createLexicalSets(options: LexicalSetsOptions): LexicalSets {
  const { files, rows, defer, report, maxBytes = 2 ** 28, saveEvery = 5000 } = options;
  /** Least recently searched first. */
  const open = new Map<string, OpenSet>();
  const loading = new Map<string, { readonly changes: Changes; readonly done: Promise<OpenSet>; readonly tenantId: string }>(); // prettier-ignore
  const keyOf = (tenantNo: number, kind: RecordKind): string => `${tenantNo} ${kind}`;

  function obtain(set: LexicalSetRef): OpenSet | Promise<OpenSet> {
    const key = keyOf(set.tenant.no, set.kind);
    const entry = open.get(key);
    if (entry !== undefined) {
      open.delete(key);
      open.set(key, entry);
      return entry;
    }
    const started = loading.get(key);
    if (started !== undefined) return started.done;
    const changes: Changes = new Map();
    const done = load(set, changes).finally(() => loading.delete(key));
    loading.set(key, { changes, done, tenantId: set.tenant.id });
    return done;
  }

  async function load(set: LexicalSetRef, changes: Changes): Promise<OpenSet> {
    const saved = tryLoad(set);
    const index = saved?.index ?? createLexicalIndex();
    const listed = rows.list(set);
    const present = new Set(listed.map(({ row }) => row));
    const departed = Array.from(index.rows()).filter((row) => !present.has(row));
    for (const row of departed) index.delete(row);
    const seq = saved?.seq ?? -1;
    const late = listed.filter((one) => one.seq > seq || !index.has(one.row)).map(({ row }) => row);
    for (let from = 0; from < late.length; from += ROWS_PER_TURN) {
      if (from > 0) await new Promise<void>((resolve) => defer(resolve));
      for (const { row, text } of rows.read(set, late.slice(from, from + ROWS_PER_TURN))) index.set(row, text);
    }
    for (const [row, text] of changes) change(index, row, text);
    const entry = { set, index, numUnsaved: departed.length + late.length + changes.size, isSaving: false };
    open.set(keyOf(set.tenant.no, set.kind), entry);
    trim(entry);
    if (entry.numUnsaved >= saveEvery) void save(entry);
    return entry;
  }

  function tryLoad(set: LexicalSetRef): ReturnType<LexicalFiles['load']> {
    try {
      return files?.load(set) ?? null;
    } catch (error) {
      report(`a lexical index cannot be read and is rebuilt: ${messageOf(error)}`);
      return null;
    }
  }

  function change(index: LexicalIndex, row: number, text: (() => string) | null): void {
    if (text === null) index.delete(row);
    else index.set(row, text());
  }

  async function save(entry: OpenSet): Promise<void> {
    if (files === null || entry.numUnsaved === 0 || entry.isSaving) return;
    entry.isSaving = true;
    try {
      await rows.flush(); // a saved index must not have rows that a power cut loses
      if (open.get(keyOf(entry.set.tenant.no, entry.set.kind)) !== entry) return;
      files.save(entry.set, entry.index, rows.lastSeq());
      entry.numUnsaved = 0;
    } catch (error) {
      report(`a lexical index cannot be saved: ${messageOf(error)}`);
    } finally {
      entry.isSaving = false;
    }
  }

  /** Closes others until all fit; one index alone may be larger. */
  function trim(used: OpenSet): void {
    let sum = 0;
    for (const { index } of open.values()) sum += index.memoryBytes;
    for (const [key, entry] of open) {
      if (sum <= maxBytes) return;
      if (entry === used) continue;
      sum -= entry.index.memoryBytes;
      void save(entry).finally(() => {
        if (open.get(key) === entry) open.delete(key);
      });
    }
  }

  return {
    async search(sets, query, k) {
      const searched = [];
      for (const { set, filter } of sets) {
        const entry = obtain(set);
        searched.push({ index: (entry instanceof Promise ? await entry : entry).index, filter });
      }
      return searchLexical(searched, query, k);
    },
    apply(tenantNo, kind, row, text) {
      const key = keyOf(tenantNo, kind);
      loading.get(key)?.changes.set(row, text);
      const entry = open.get(key);
      if (entry === undefined) return; // read from the rows when it is opened
      change(entry.index, row, text);
      if (++entry.numUnsaved >= saveEvery) void save(entry);
    },
    compare(set) {
      const entry = open.get(keyOf(set.tenant.no, set.kind));
      if (entry === undefined) return null;
      const listed = rows.list(set);
      const missing = listed.filter(({ row }) => !entry.index.has(row)).length;
      return { size: entry.index.size, missing, numRows: listed.length };
    },
    async removeTenant(tenantId) {
      await Promise.allSettled([...loading.values()].map(({ done }) => done));
      for (const [key, { set }] of open) if (set.tenant.id === tenantId) open.delete(key);
      files?.removeTenant(tenantId);
    },
    async close() {
      await Promise.allSettled([...loading.values()].map(({ done }) => done));
      for (const entry of Array.from(open.values())) await save(entry);
      open.clear();
    },
  };
}
