import type { VectorFilter, VectorHit, VectorIndex, VectorQuery } from '../vector-index/types.ts';
import { messageOf } from '../../core/errors.ts';

/** The vectors of one tenant, kind and space. */
export interface VectorSetRef {
  readonly no: number;
  /** A keyed hash. */
  readonly tenantId: string;
  readonly dim: number;
}

/** Saved indexes; the rows of the store stay authoritative. */
export interface VectorIndexFiles {
  /** Null: none that can be used. */
  load(set: VectorSetRef): Promise<{ readonly index: VectorIndex; readonly seq: number } | null>;
  /** Writes all changes up to `seq`; later ones are applied again after loading. */
  save(set: VectorSetRef, index: VectorIndex, seq: number): Promise<void>;
  removeTenant(tenantId: string): Promise<void>;
}

/** The rows of the indexes. */
export interface VectorRows {
  /** Of the last durable write. */
  lastSeq(): number;
  /** Resolves when everything committed is on disk. */
  flush(): Promise<void>;
  /** Rows that left a set after `seq`. */
  departedSince(set: VectorSetRef, seq: number): readonly number[];
  /** Rows added after `seq`, ordered by seq; -1: all. */
  arrivedSince(
    set: VectorSetRef,
    seq: number,
    limit: number,
  ): readonly { readonly row: number; readonly seq: number; readonly vector: Float32Array }[];
  /** The index is saved as of `seq`: older departures can be deleted. */
  saved(set: VectorSetRef, seq: number): void;
}

interface VectorSetsOptions {
  readonly createIndex: (dim: number) => VectorIndex | Promise<VectorIndex>;
  /** Null: indexes are built on first use. */
  readonly files: VectorIndexFiles | null;
  readonly rows: VectorRows;
  /** Called when an index could not be saved or used. */
  readonly report: (message: string) => void;
  /** Default 64. */
  readonly maxOpen?: number;
  /** Changes after which an index is saved. Default 5000. */
  readonly saveEvery?: number;
}

export interface VectorSets {
  search(set: VectorSetRef, query: VectorQuery): Promise<readonly VectorHit[]>;
  /** After a commit: the vector of a row was added, or (null) removed. Later searches see it. */
  apply(setNo: number, row: number, vector: Float32Array | null): void;
  /** Compares an open index with all existing rows; null: not open. */
  compare(setNo: number, rows: readonly number[]): Promise<{ readonly size: number; readonly missing: number } | null>;
  save(): Promise<void>;
  removeTenant(tenantId: string): Promise<void>;
  close(): Promise<void>;
}

interface OpenSet {
  readonly set: VectorSetRef;
  readonly index: VectorIndex;
  /** The last change of each row that is not yet in the index. */
  waiting: Map<number, Float32Array | null>;
  /** Changes are serial, because growing an index is asynchronous. */
  working: Promise<void>;
  numUnsaved: number;
  isSaving: boolean;
  numUsers: number;
}

/** Rows opened at once while an index catches up. */
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
    const index = saved?.index ?? (await createIndex(set.dim));
    let seq = saved?.seq ?? -1;
    let numUnsaved = 0;
    try {
      // Writes continue meanwhile: repeats until nothing is new.
      for (;;) {
        for (const row of rows.departedSince(set, seq)) if (index.delete(row)) numUnsaved++;
        const arrived = rows.arrivedSince(set, seq, CATCH_UP_ROWS);
        if (arrived.length === 0) break;
        await addAll(index, new Map(arrived.map(({ row, vector }) => [row, vector])));
        numUnsaved += arrived.length;
        seq = arrived.at(-1)!.seq;
      }
    } catch (error) {
      await index.dispose();
      throw error;
    }
    const entry: OpenSet = { set, index, waiting: new Map(), working: Promise.resolve(), numUnsaved, isSaving: false, numUsers: 0 }; // prettier-ignore
    open.set(set.no, entry);
    void trim();
    return entry;
  }

  async function tryLoad(set: VectorSetRef): Promise<{ index: VectorIndex; seq: number } | null> {
    try {
      const saved = (await files?.load(set)) ?? null;
      if (saved === null || saved.index.dim === set.dim) return saved;
      report(`a vector index has the length ${saved.index.dim}, its set ${set.dim}; it is rebuilt`);
      await saved.index.dispose();
    } catch (error) {
      report(`a vector index cannot be read and is rebuilt: ${messageOf(error)}`);
    }
    return null;
  }

  /** Resolves when the index has all changes; null: it failed and was discarded. */
  async function settle(entry: OpenSet): Promise<OpenSet | null> {
    if (entry.waiting.size > 0) entry.working = entry.working.then(() => catchUp(entry));
    await entry.working;
    return open.get(entry.set.no) === entry ? entry : null;
  }

  async function catchUp(entry: OpenSet): Promise<void> {
    const changes = entry.waiting;
    entry.waiting = new Map();
    const added = new Map<number, Float32Array>();
    if (changes.size === 0) return;
    try {
      for (const [row, vector] of changes) {
        if (vector === null) entry.index.delete(row);
        else added.set(row, vector);
      }
      await addAll(entry.index, added);
    } catch (error) {
      report(`a vector index failed and is rebuilt: ${messageOf(error)}`);
      discard(entry);
    }
    entry.numUnsaved += changes.size;
  }

  async function saveOne(entry: OpenSet): Promise<void> {
    if (files === null || (await settle(entry)) === null || entry.numUnsaved === 0) return;
    const write = async (): Promise<void> => {
      const seq = rows.lastSeq();
      await catchUp(entry); // all changes up to `seq`; later ones wait
      const { numUnsaved } = entry;
      // A discarded index is not saved: the file still needs the departures.
      if (open.get(entry.set.no) !== entry) return;
      await rows.flush(); // a saved index must not have rows that a power cut loses
      await files.save(entry.set, entry.index, seq);
      entry.numUnsaved -= numUnsaved;
      rows.saved(entry.set, seq);
    };
    entry.working = entry.working.then(write).catch((error: unknown) => {
      report(`a vector index cannot be saved: ${messageOf(error)}`);
    });
    await entry.working;
  }

  async function saveSoon(entry: OpenSet): Promise<void> {
    if (entry.isSaving) return;
    entry.isSaving = true;
    await saveOne(entry);
    entry.isSaving = false;
  }

  async function trim(): Promise<void> {
    for (const entry of Array.from(open.values())) {
      if (open.size <= maxOpen) return;
      if (entry.numUsers > 0) continue;
      await saveOne(entry);
      if (entry.numUsers === 0) discard(entry); // it may be in use again
    }
  }

  function discard(entry: OpenSet): void {
    if (open.get(entry.set.no) !== entry) return;
    open.delete(entry.set.no);
    Promise.resolve(entry.index.dispose()).catch((error: unknown) => report(messageOf(error)));
  }

  return {
    async search(set, query) {
      // A change may break an index once; the rebuilt one has it already.
      for (let attempt = 0; ; attempt++) {
        const entry = await obtain(set);
        entry.numUsers++;
        try {
          if ((await settle(entry)) !== null || attempt > 0) return entry.index.search(query);
        } finally {
          entry.numUsers--;
        }
      }
    },
    apply(setNo, row, vector) {
      const entry = open.get(setNo);
      if (entry === undefined) return; // read from the rows when it is opened
      entry.waiting.delete(row);
      entry.waiting.set(row, vector);
      if (entry.numUnsaved + entry.waiting.size >= saveEvery && files !== null) void saveSoon(entry);
      else if (entry.waiting.size >= CATCH_UP_ROWS) void settle(entry);
    },
    async compare(setNo, candidates) {
      const entry = open.get(setNo);
      if (entry === undefined || (await settle(entry)) === null) return null;
      return { size: entry.index.size, missing: candidates.filter((row) => !entry.index.has(row)).length };
    },
    async save() {
      for (const entry of Array.from(open.values())) await saveOne(entry);
    },
    async removeTenant(tenantId) {
      await Promise.allSettled(loading.values());
      for (const entry of Array.from(open.values())) {
        if (entry.set.tenantId !== tenantId) continue;
        await entry.working;
        discard(entry);
      }
      await files?.removeTenant(tenantId);
    },
    async close() {
      await Promise.allSettled(loading.values());
      for (const entry of Array.from(open.values())) {
        await saveOne(entry);
        discard(entry);
      }
    },
  };
}

async function addAll(index: VectorIndex, added: ReadonlyMap<number, Float32Array>): Promise<void> {
  const [only] = added;
  if (only === undefined) return;
  if (added.size === 1) {
    await index.add(...only);
    return;
  }
  const vectors = new Float32Array(added.size * index.dim);
  let i = 0;
  for (const vector of added.values()) vectors.set(vector, index.dim * i++);
  await index.addMany([...added.keys()], vectors);
}

export function createRowFilter(rows: ReadonlySet<number>): VectorFilter {
  return { has: (row) => rows.has(row), size: rows.size, keys: () => rows };
}
