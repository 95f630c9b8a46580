import type { VectorFilter, VectorHit, VectorIndex, VectorQuery } from '../vector-index/types.ts';

/** The vectors of one tenant, kind and space. */
export interface VectorSetRef {
  readonly no: number;
  /** Keyed: says nothing about whose it is. */
  readonly tenantId: string;
  readonly dim: number;
}

/** Where indexes are kept, sealed; the rows of the store remain what counts. */
export interface VectorIndexFiles {
  /** The index as it was saved, with the seq it was saved at; null where there is none that can be used. */
  load(set: VectorSetRef): Promise<{ readonly index: VectorIndex; readonly seq: number } | null>;
  /** What it writes is at least as new as `seq` says: changes since then are made again, which changes nothing. */
  save(set: VectorSetRef, index: VectorIndex, seq: number): Promise<void>;
  removeTenant(tenantId: string): Promise<void>;
}

/** The rows behind the indexes. */
export interface VectorRows {
  /** Of the last write that was committed. */
  lastSeq(): number;
  /** What happened to a set after `seq`; with -1 all that is there. */
  departedSince(set: VectorSetRef, seq: number): readonly number[];
  /** At most `limit` of them, by seq. */
  arrivedSince(
    set: VectorSetRef,
    seq: number,
    limit: number,
  ): readonly { readonly row: number; readonly seq: number; readonly vector: Float32Array }[];
  /** The index is on disk as of `seq`: older departures need not be remembered. */
  saved(set: VectorSetRef, seq: number): void;
}

export interface VectorSetsOptions {
  readonly createIndex: (dim: number) => VectorIndex;
  /** Null: indexes are built anew when they are first asked for. */
  readonly files: VectorIndexFiles | null;
  readonly rows: VectorRows;
  /** Hears of an index that could not be saved or used. */
  readonly report: (message: string) => void;
  /** Default 64. */
  readonly maxOpen?: number;
  /** Changes after which an index is saved. Default 5000. */
  readonly saveEvery?: number;
}

export interface VectorSets {
  search(set: VectorSetRef, query: VectorQuery): Promise<readonly VectorHit[]>;
  /** After a commit: the vector of a row is in the set now, or (null) no more. Never throws. */
  apply(setNo: number, row: number, vector: Float32Array | null): void;
  /** The keys of a set whose index is open, else null. */
  openKeys(setNo: number, candidates: readonly number[]): { readonly size: number; readonly missing: number } | null;
  /** Saves what has changed. */
  save(): Promise<void>;
  removeTenant(tenantId: string): Promise<void>;
  close(): Promise<void>;
}

interface OpenSet {
  readonly set: VectorSetRef;
  readonly index: VectorIndex;
  numUnsaved: number;
  isSaving: boolean;
  numSearches: number;
}

/** Rows that are opened at once while an index catches up. */
const CATCH_UP_ROWS = 1000;

export function createVectorSets(options: VectorSetsOptions): VectorSets {
  const { createIndex, files, rows, report, maxOpen = 64, saveEvery = 5000 } = options;
  /** Least recently searched first. */
  const open = new Map<number, OpenSet>();
  const loading = new Map<number, Promise<OpenSet>>();

  async function obtain(set: VectorSetRef): Promise<OpenSet> {
    const known = open.get(set.no);
    if (known !== undefined) {
      open.delete(set.no);
      open.set(set.no, known);
      return known;
    }
    let promise = loading.get(set.no);
    if (promise === undefined) {
      promise = load(set).finally(() => loading.delete(set.no));
      loading.set(set.no, promise);
    }
    return promise;
  }

  async function load(set: VectorSetRef): Promise<OpenSet> {
    const saved = await tryLoad(set);
    const index = saved?.index ?? createIndex(set.dim);
    let seq = saved?.seq ?? -1;
    let numUnsaved = 0;
    try {
      // Writes go on while vectors are added: until a look at the rows shows nothing new, and then without a pause.
      for (;;) {
        for (const row of rows.departedSince(set, seq)) if (index.delete(row)) numUnsaved++;
        const arrived = rows.arrivedSince(set, seq, CATCH_UP_ROWS);
        if (arrived.length === 0) break;
        const vectors = new Float32Array(arrived.length * set.dim);
        arrived.forEach(({ vector }, i) => vectors.set(vector, i * set.dim));
        await index.addMany(arrived.map(({ row }) => row), vectors); // prettier-ignore
        numUnsaved += arrived.length;
        seq = arrived.at(-1)!.seq;
      }
    } catch (error) {
      index.dispose();
      throw error;
    }
    const entry: OpenSet = { set, index, numUnsaved, isSaving: false, numSearches: 0 };
    open.set(set.no, entry);
    void trim();
    return entry;
  }

  async function tryLoad(set: VectorSetRef): Promise<{ index: VectorIndex; seq: number } | null> {
    try {
      const saved = (await files?.load(set)) ?? null;
      if (saved === null || saved.index.dim === set.dim) return saved;
      report(`a vector index has the length ${saved.index.dim}, its set ${set.dim}: it is built anew`);
      saved.index.dispose();
    } catch (error) {
      report(`a vector index cannot be read and is built anew: ${messageOf(error)}`);
    }
    return null;
  }

  async function saveOne(entry: OpenSet): Promise<void> {
    if (files === null || entry.isSaving || entry.numUnsaved === 0) return;
    const seq = rows.lastSeq();
    const { numUnsaved } = entry;
    entry.isSaving = true;
    try {
      await files.save(entry.set, entry.index, seq);
      entry.numUnsaved -= numUnsaved;
      rows.saved(entry.set, seq);
    } catch (error) {
      report(`a vector index cannot be saved: ${messageOf(error)}`);
    } finally {
      entry.isSaving = false;
    }
  }

  async function trim(): Promise<void> {
    for (const [no, entry] of open) {
      if (open.size <= maxOpen) return;
      if (entry.numSearches > 0 || entry.isSaving) continue;
      await saveOne(entry);
      // Somebody may have come for it meanwhile.
      if (entry.numSearches === 0 && open.get(no) === entry) discard(no);
    }
  }

  function discard(no: number): void {
    const entry = open.get(no);
    open.delete(no);
    entry?.index.dispose();
  }

  return {
    async search(set, query) {
      const entry = await obtain(set);
      entry.numSearches++;
      try {
        return entry.index.search(query);
      } finally {
        entry.numSearches--;
      }
    },
    apply(setNo, row, vector) {
      const entry = open.get(setNo);
      if (entry === undefined) return; // found in the rows when it is opened
      try {
        if (vector === null) entry.index.delete(row);
        else entry.index.add(row, vector);
      } catch (error) {
        report(`a vector index failed and is built anew: ${messageOf(error)}`);
        discard(setNo);
        return;
      }
      if (++entry.numUnsaved >= saveEvery) void saveOne(entry);
    },
    openKeys(setNo, candidates) {
      const index = open.get(setNo)?.index;
      if (index === undefined) return null;
      return { size: index.size, missing: candidates.filter((row) => !index.has(row)).length };
    },
    async save() {
      for (const entry of open.values()) await saveOne(entry);
    },
    async removeTenant(tenantId) {
      await Promise.allSettled(loading.values());
      for (const [no, { set }] of open) if (set.tenantId === tenantId) discard(no);
      await files?.removeTenant(tenantId);
    },
    async close() {
      await Promise.allSettled(loading.values());
      for (const entry of open.values()) await saveOne(entry);
      for (const no of open.keys()) discard(no);
    },
  };
}

/** The rows that pass, as an index likes to ask. */
export function createRowFilter(rows: ReadonlySet<number>): VectorFilter {
  return { has: (row) => rows.has(row), size: rows.size, keys: () => rows };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
