import { describe, expect, test } from 'vitest';
import type { VectorIndex } from '../vector-index/types.ts';
import { createBruteForce } from './brute-force.contract.ts';
import { vectorOf } from './store-setup.contract.ts';
import { createVectorSets, type VectorIndexFiles, type VectorRows, type VectorSetRef } from './vector-sets.ts';

const set: VectorSetRef = { no: 1, tenantId: 'tenant', dim: 2 };
const query = { vector: vectorOf(1, 0), k: 10 };

/** Rows with a seq each, and what left. */
function createRows() {
  let seq = 0;
  const rows = new Map<number, { seq: number; vector: Float32Array }>();
  const departures: { row: number; seq: number }[] = [];
  const reads: number[] = [];
  const saved: number[] = [];
  const source: VectorRows = {
    lastSeq: () => seq,
    flush: async () => {},
    departedSince: (_, after) => departures.filter((gone) => gone.seq > after).map(({ row }) => row),
    arrivedSince(_, after, limit) {
      reads.push(after);
      const found = [...rows].map(([row, entry]) => ({ row, ...entry })).filter((entry) => entry.seq > after);
      return found.sort((a, b) => a.seq - b.seq).slice(0, limit);
    },
    saved: (_, at) => void saved.push(at),
  };
  return {
    source,
    reads,
    saved,
    put: (row: number, ...values: number[]) => void rows.set(row, { seq: ++seq, vector: vectorOf(...values) }),
    remove(row: number) {
      rows.delete(row);
      departures.push({ row, seq: ++seq });
    },
  };
}

function createFiles() {
  let kept: { vectors: Map<number, Float32Array>; seq: number } | null = null;
  const log: string[] = [];
  const files: VectorIndexFiles = {
    async load({ dim }) {
      if (kept === null) return null;
      const index = createBruteForce(dim);
      for (const [row, vector] of kept.vectors) void index.add(row, vector);
      return { index, seq: kept.seq };
    },
    async save(_, index, seq) {
      const keys = index.search({ vector: vectorOf(1, 1), k: 1000 }).map(({ key }) => key);
      await Promise.resolve();
      kept = { seq, vectors: new Map(keys.map((key) => [key, index.get(key)!])) };
      log.push(`save ${keys.length} at ${seq}`);
    },
    async removeTenant(tenantId) {
      kept = null;
      log.push(`remove ${tenantId}`);
    },
  };
  return { files, log };
}

const create = (rows: VectorRows, change: Partial<Parameters<typeof createVectorSets>[0]> = {}) =>
  createVectorSets({ createIndex: createBruteForce, files: null, rows, report: () => {}, ...change });

const keysOf = async (sets: ReturnType<typeof create>): Promise<number[]> =>
  (await sets.search(set, query)).map(({ key }) => key).sort((a, b) => a - b);

describe('vector sets', () => {
  test('[MS28] an index is built from the rows when it is first asked for, then follows the writes', async () => {
    const rows = createRows();
    rows.put(1, 1, 0);
    const sets = create(rows.source);
    sets.apply(1, 1, vectorOf(1, 0)); // not open yet: nothing to follow
    expect(await keysOf(sets)).toEqual([1]);
    rows.put(2, 0, 1);
    sets.apply(1, 2, vectorOf(0, 1));
    sets.apply(1, 1, null);
    sets.apply(1, 3, vectorOf(1, 1));
    sets.apply(1, 3, null);
    expect(await keysOf(sets)).toEqual([2]);
    expect(await sets.compare(1, [2])).toEqual({ size: 1, missing: 0 });
    expect(await sets.compare(1, [2, 5])).toEqual({ size: 1, missing: 1 });
    expect(await sets.compare(7, [])).toBeNull();
  });

  test('[MS28] updates a saved index with later rows only', async () => {
    const rows = createRows();
    const { files, log } = createFiles();
    for (let i = 1; i <= 5; i++) rows.put(i, i, 1);
    const first = create(rows.source, { files });
    expect(await keysOf(first)).toEqual([1, 2, 3, 4, 5]);
    await first.close();
    expect(log).toEqual(['save 5 at 5']);
    expect(rows.saved).toEqual([5]);
    rows.put(6, 1, 1);
    rows.remove(2);
    rows.put(3, -1, 0);
    rows.reads.length = 0;
    const second = create(rows.source, { files });
    expect(await keysOf(second)).toEqual([1, 3, 4, 5, 6]);
    expect(rows.reads[0]).toBe(5);
    expect((await second.search(set, query)).at(-1)).toMatchObject({ key: 3, score: -1 });
    await second.close();
    expect(log.at(-1)).toBe('save 5 at 8');
    const third = create(rows.source, { files });
    await keysOf(third);
    await third.close();
    expect(log).toHaveLength(2); // nothing new, nothing written
  });

  test('[MS28] writes that come while an index is opened or saved are not lost', async () => {
    const rows = createRows();
    const { files, log } = createFiles();
    for (let i = 1; i <= 2500; i++) rows.put(i, i, 1);
    let sets: ReturnType<typeof create>;
    const createIndex = (dim: number): VectorIndex => {
      const index = createBruteForce(dim);
      const { addMany } = index;
      index.addMany = async (keys, vectors) => {
        await addMany(keys, vectors);
        if (keys.includes(1500)) {
          rows.put(9000, 1, 0);
          sets.apply(1, 9000, vectorOf(1, 0));
          rows.remove(3);
          sets.apply(1, 3, null);
        }
      };
      return index;
    };
    sets = create(rows.source, { files, createIndex, saveEvery: 3 });
    const found = await sets.search(set, { vector: vectorOf(1, 0), k: 3000 });
    expect(found).toHaveLength(2500);
    expect(found.some(({ key }) => key === 9000) && !found.some(({ key }) => key === 3)).toBe(true);
    for (let i = 0; i < 10; i++) {
      rows.put(9100 + i, 1, i);
      sets.apply(1, 9100 + i, vectorOf(1, i));
      if (i % 3 === 0) await Promise.resolve();
    }
    await sets.close();
    expect(log.at(-1)).toBe(`save 1000 at ${rows.source.lastSeq()}`); // as many as the fake file looks for
    expect(log.length).toBeLessThan(6);
  });

  test('[MS34] an index is saved when the disk has its rows, and not when it refuses them', async () => {
    const rows = createRows();
    const { files, log } = createFiles();
    const reports: string[] = [];
    let isRefusing = true;
    const flush = async (): Promise<void> => {
      log.push('flush');
      if (isRefusing) throw new Error('EIO');
    };
    rows.put(1, 1, 0);
    const sets = create({ ...rows.source, flush }, { files, report: (message) => reports.push(message) });
    await keysOf(sets);
    await sets.save();
    expect(log).toEqual(['flush']);
    expect(reports).toEqual(['a vector index cannot be saved: EIO']);
    isRefusing = false;
    await sets.save();
    expect(log).toEqual(['flush', 'flush', 'save 1 at 1']);
  });

  test('[MS28] rebuilds and reports an index that cannot be read, has another length, or fails', async () => {
    const rows = createRows();
    rows.put(1, 1, 0);
    const told: string[] = [];
    const report = (message: string): void => void told.push(message);
    const broken = { ...createFiles().files, load: () => Promise.reject(new Error('damaged')) };
    expect(await keysOf(create(rows.source, { files: broken, report }))).toEqual([1]);
    const other = { ...createFiles().files, load: async () => ({ index: createBruteForce(3), seq: 9 }) };
    expect(await keysOf(create(rows.source, { files: other, report }))).toEqual([1]);
    let numBuilt = 0;
    const createIndex = (dim: number): VectorIndex => {
      const index = createBruteForce(dim);
      if (numBuilt++ === 0) index.add = () => { throw new Error('no memory'); }; // prettier-ignore
      return index;
    };
    rows.put(2, 2, 0);
    const sets = create(rows.source, { createIndex, report });
    await keysOf(sets);
    rows.put(3, 3, 0);
    sets.apply(1, 3, vectorOf(3, 0));
    expect(await keysOf(sets)).toEqual([1, 2, 3]);
    expect(told).toEqual([
      'a vector index cannot be read and is rebuilt: damaged',
      'a vector index has the length 3, its set 2; it is rebuilt',
      'a vector index failed and is rebuilt: no memory',
    ]);
  });

  test('[MS28] a disk that refuses an index costs nothing but time', async () => {
    const rows = createRows();
    rows.put(1, 1, 0);
    const told: string[] = [];
    const files = { ...createFiles().files, save: () => Promise.reject(new Error('full')) };
    const sets = create(rows.source, { files, report: (message) => void told.push(message) });
    expect(await keysOf(sets)).toEqual([1]);
    await sets.close();
    expect([told, rows.saved]).toEqual([['a vector index cannot be saved: full'], []]);
  });

  test('[MS28] keeps departures of an index that was discarded while it was saved', async () => {
    const rows = createRows();
    const { files, log } = createFiles();
    rows.put(1, 1, 0);
    let sets: ReturnType<typeof create>;
    const createIndex = (dim: number): VectorIndex => {
      const index = createBruteForce(dim);
      const { addMany } = index;
      index.addMany = async (keys, vectors) => {
        sets.apply(1, 99, vectorOf(1, 9)); // comes while the others are added, and fails
        await addMany(keys, vectors);
      };
      const { add } = index;
      index.add = async (key, vector) => {
        if (key === 99) throw new Error('no memory');
        await add(key, vector);
      };
      return index;
    };
    sets = create(rows.source, { files, createIndex });
    expect(await keysOf(sets)).toEqual([1]);
    for (const row of [2, 3]) sets.apply(1, row, vectorOf(row, 0));
    await sets.save();
    expect([log, rows.saved]).toEqual([[], []]);
  });

  test('[MS28] so many indexes are open and no more; those of an erased tenant are gone', async () => {
    const rows = createRows();
    rows.put(1, 1, 0);
    const { files, log } = createFiles();
    const made: ReturnType<typeof createBruteForce>[] = [];
    const createIndex = (dim: number) => (made.push(createBruteForce(dim)), made.at(-1)!);
    const sets = create(rows.source, { createIndex, maxOpen: 2, files });
    for (const no of [1, 2, 3]) await sets.search({ ...set, no, tenantId: `t${no}` }, query);
    await sets.save();
    expect(made.map(({ isDisposed }) => isDisposed)).toEqual([true, false, false]);
    await sets.removeTenant('t2');
    expect(made.map(({ isDisposed }) => isDisposed)).toEqual([true, true, false]);
    expect(log.at(-1)).toBe('remove t2');
  });
});
