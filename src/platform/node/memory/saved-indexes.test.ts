import { afterEach, expect, test } from 'vitest';
import { createBruteForce } from '../../../memory/store/brute-force.contract.ts';
import { directionOf, idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import type { VectorIndexFiles, VectorSetRef } from '../../../memory/store/vector-sets.ts';
import type { MemoryStore } from '../../../memory/types.ts';
import { breakDisk, type FaultyDisk } from './faults.contract.ts';
import { newFolder, openAt } from './memory-setup.contract.ts';

/** Indexes that outlive the store, as they do on a disk. */
function createKeptIndexes() {
  const kept = new Map<number, { set: VectorSetRef; seq: number; vectors: Map<number, Float32Array> }>();
  const added: number[] = [];
  const files: VectorIndexFiles = {
    async load({ no, dim }) {
      const saved = kept.get(no);
      if (saved === undefined) return null;
      const index = createBruteForce(dim);
      for (const [row, vector] of saved.vectors) void index.add(row, vector);
      const { addMany, add } = index;
      index.addMany = (keys, vectors) => (added.push(...keys), addMany(keys, vectors));
      index.add = (key, vector) => (added.push(key), add(key, vector));
      return { index, seq: saved.seq };
    },
    async save(set, index, seq) {
      const keys = index.search({ vector: directionOf(1), k: 10_000 }).map(({ key }) => key);
      kept.set(set.no, { set, seq, vectors: new Map(keys.map((key) => [key, index.get(key)!])) });
    },
    async removeTenant(tenantId) {
      for (const [no, { set }] of kept) if (set.tenantId === tenantId) kept.delete(no);
    },
  };
  return { files, kept, added };
}

let disk: FaultyDisk | null = null;
afterEach(() => disk?.heal());

const of = (i: number, change: object = {}) => recordOf(i, { vector: directionOf(i), space: 's', ...change });

async function idsIn(store: MemoryStore, space: string): Promise<number[]> {
  const found = await store.nearest('alpha', { kinds: ['fact'], vector: directionOf(1), space, k: 1000 });
  return found.map(({ record }) => Number.parseInt(record.id.slice(-4), 16)).sort((a, b) => a - b);
}

test('[MS28] an index that was saved, then missed writes of later openings, has them all when it is searched again', async () => {
  const folder = newFolder();
  const { files, kept, added } = createKeptIndexes();
  const open = (): MemoryStore => openAt(folder, { openIndexFiles: () => files }).store;
  let store = open();
  await store.put(Array.from({ length: 50 }, (_, i) => of(i)));
  expect(await idsIn(store, 's')).toHaveLength(50);
  await store.close();
  expect(kept.size).toBe(1);

  store = open(); // never searched: the index is not opened
  await store.delete('alpha', [idOf(0), idOf(1)]);
  await store.put([
    of(2, { vector: null, space: null }),
    of(3, { space: 'other' }),
    of(4, { vector: directionOf(400) }),
  ]);
  await store.put([of(50), of(51)]);
  await store.delete('alpha', [idOf(51)]);
  await store.close();
  store = open(); // seqs go on where they were, although the highest row is gone
  await store.put([of(52)]);
  await store.close();

  store = open();
  added.length = 0;
  const expected = Array.from({ length: 53 }, (_, i) => i).filter((i) => ![0, 1, 2, 3, 51].includes(i));
  expect(await idsIn(store, 's')).toEqual(expected);
  expect(added).toHaveLength(3); // 4, 50 and 52: nothing else was read
  expect(await idsIn(store, 'other')).toEqual([3]);
  await store.checkIntegrity();
  await store.put([of(3)]); // and back
  expect([await idsIn(store, 's'), await idsIn(store, 'other')]).toEqual([[3, ...expected].sort((a, b) => a - b), []]);
  await store.close();

  kept.clear(); // the files are lost: all is built from the rows
  store = open();
  expect(await idsIn(store, 's')).toHaveLength(expected.length + 1);
  await store.eraseTenant('alpha');
  await store.close();
  expect(kept.size).toBe(0);
});

test('[MS28] an index with more than the rows is damaged', async () => {
  const folder = newFolder();
  const { files, kept } = createKeptIndexes();
  const first = openAt(folder, { openIndexFiles: () => files });
  await first.store.put([of(1), of(2)]);
  await idsIn(first.store, 's');
  await first.store.close();
  [...kept.values()][0]!.vectors.set(777, directionOf(1));
  const { store } = openAt(folder, { openIndexFiles: () => files });
  expect(await idsIn(store, 's')).toEqual([1, 2]); // a row that is not there is no result
  await expect(store.checkIntegrity()).rejects.toThrow('has 3 vectors, 0 of 2 are missing');
});

/** A change that meets a disk that fails from the n-th on, the index saved all the same, and what a new opening finds. */
async function changeAndReopen(n: number, change: (store: MemoryStore) => Promise<unknown>) {
  const folder = newFolder();
  const { files } = createKeptIndexes();
  const options = { driver: 'wasm', openIndexFiles: () => files } as const;
  disk = breakDisk(n, 'I/O error', 'from');
  const first = openAt(folder, { ...options, files: disk.files }).store;
  await first.put([of(1), of(2)]);
  await idsIn(first, 's');
  await first.put([of(3)]); // so that there is something to save
  const numBefore = disk.numCalls;
  const isAcknowledged = await change(first).then(() => true, () => false); // prettier-ignore
  const numAfter = disk.numCalls;
  await first.close().catch(() => {});
  disk.heal();
  await first.close().catch(() => {});
  const { store } = openAt(folder, options);
  const isThere = (await store.get('alpha', [idOf(1), idOf(4)])).map((record) => record !== null);
  const found = await idsIn(store, 's');
  await store.checkIntegrity();
  await store.close();
  return { isAcknowledged, isThere, found, numBefore, numAfter };
}

test('[MS28] a failed write that appears after the next opening is in the saved index', async () => {
  const put = (store: MemoryStore): Promise<unknown> => store.put([of(4)]);
  const { numBefore, numAfter } = await changeAndReopen(0, put);
  let numInDoubt = 0;
  for (let n = numBefore + 1; n <= numAfter; n++) {
    const { isAcknowledged, isThere, found } = await changeAndReopen(n, put);
    expect([n, found]).toEqual([n, isThere[1]! ? [1, 2, 3, 4] : [1, 2, 3]]);
    if (isAcknowledged) expect([n, isThere]).toEqual([n, [true, true]]);
    else if (isThere[1]!) numInDoubt++;
  }
  expect(numInDoubt).toBeGreaterThan(0); // else nothing was tried
});

test('[MS28] a failed deletion that appears after the next opening is in the index', async () => {
  const remove = (store: MemoryStore): Promise<unknown> => store.delete('alpha', [idOf(1)]);
  const { numBefore, numAfter } = await changeAndReopen(0, remove);
  let numInDoubt = 0;
  for (let n = numBefore + 1; n <= numAfter; n++) {
    const { isAcknowledged, isThere, found } = await changeAndReopen(n, remove);
    expect([n, found]).toEqual([n, isThere[0]! ? [1, 2, 3] : [2, 3]]);
    if (!isAcknowledged && !isThere[0]!) numInDoubt++;
  }
  expect(numInDoubt).toBeGreaterThan(0);
});
