import { beforeAll, describe, expect, test } from 'vitest';
import { createExactIndex, createHnswIndex, createVectorIndex, openVectorIndex } from './create-index.ts';
import { clustered, createMemoryFile, flat, keysOf, type MemoryFile, wasm } from './index-fixture.contract.ts';
import type { VectorIndex } from './types.ts';

const dim = 200;
const options = { kernels: wasm, dim, m: 4, efConstruction: 20 };
const vectors = clustered(900, dim, 21);
const queries = clustered(10, dim, 22);
const range = (count: number, from = 1): number[] => Array.from({ length: count }, (_, i) => i + from);
const answers = (index: VectorIndex): unknown => queries.map((vector) => index.search({ vector, k: 12, ef: 12 }));

async function make(count = 600): Promise<VectorIndex> {
  const index = await createHnswIndex(options);
  await index.addMany(range(count), flat(vectors.slice(0, count)));
  await index.add(7001, vectors[0]!); // shares a slot
  for (const key of range(30, 100)) index.delete(key);
  return index;
}

async function open(file: MemoryFile): Promise<{ index: VectorIndex; seq: number }> {
  const opened = await openVectorIndex(options, file);
  opened!.index.checkIntegrity();
  return opened!;
}

test('[VI40] opened as it was saved, changed and saved again', async () => {
  const index = await make();
  const file = createMemoryFile();
  expect(await openVectorIndex(options, file)).toBeNull();
  expect(index.save(file, 17).generation).toBe(1);
  const first = await open(file);
  expect([first.seq, first.index.size]).toEqual([17, index.size]);
  expect(answers(first.index)).toEqual(answers(index));
  expect(keysOf(first.index.search({ vector: vectors[0]!, k: 2 }))).toEqual([1, 7001]);
  for (const i of range(200, 600)) await first.index.add(i + 1, vectors[i]!);
  expect(first.index.save(file, 18).generation).toBe(2);
  const second = await open(file);
  expect([second.seq, second.index.size]).toEqual([18, 771]);
  expect(answers(second.index)).toEqual(answers(first.index));
  for (const { index: each } of [first, second, { index }]) await each.dispose();
});

test('[VI40] counts keys that share a slot, and deletes them one by one', async () => {
  const index = await make();
  const file = createMemoryFile();
  index.save(file, 1);
  for (const order of [
    [1, 7001],
    [7001, 1],
  ]) {
    // prettier-ignore
    const { index: opened } = (await openVectorIndex(options, file))!;
    const sizes = order.map((key) => (opened.delete(key), opened.size));
    expect([index.size, ...sizes]).toEqual([571, 570, 569]);
    expect([opened.has(1), opened.has(7001)]).toEqual([false, false]);
    await opened.dispose();
  }
  await index.dispose();
});

test('[VI43] a link to where there is nothing is damage', async () => {
  const index = await make();
  const file = createMemoryFile();
  index.save(file, 1);
  const { bytes } = file.blocks().find(({ name }) => name.startsWith('links 0 '))!;
  const links = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const end = 600;
  const [first] = links;
  for (const id of [end, end + 1, -2, 2 ** 31 - 1, -(2 ** 31)]) {
    links[0] = id;
    await expect(openVectorIndex(options, file)).rejects.toMatchObject({
      code: 'hash_mismatch',
      message: expect.stringContaining(`a link to ${id} of ${end}`) as string,
    });
  }
  for (const id of [end - 1, -1, first!]) {
    links[0] = id;
    await (await openVectorIndex(options, file))!.index.dispose();
  }
  await index.dispose();
});

test.each([
  ['exact', () => createExactIndex(options)],
  ['on its way to a graph', () => createVectorIndex({ ...options, graphFrom: 300 })],
  ['int8', () => createHnswIndex({ ...options, storage: 'int8' })],
  ['int8 alone', () => createHnswIndex({ ...options, storage: 'int8', keepsExact: false })],
  ['empty', () => createHnswIndex(options)],
] as const)('[VI40] %s', async (name, create) => {
  const index = await create();
  const count = name === 'empty' ? 0 : 310;
  for (const i of range(count, 0)) await index.add(i + 1, vectors[i]!);
  const file = createMemoryFile();
  index.save(file, 1);
  const storage = name.startsWith('int8') ? { storage: 'int8' as const, keepsExact: name === 'int8' } : {};
  const opened = (await openVectorIndex({ ...options, ...storage, graphFrom: 300 }, file))!;
  expect(opened.index.hasGraph).toBe(index.hasGraph);
  expect(answers(opened.index)).toEqual(answers(index));
  await opened.index.add(5000, queries[0]!);
  expect(opened.index.search({ vector: queries[0]!, k: 1 })[0]!.key).toBe(5000);
  opened.index.checkIntegrity();
  await opened.index.dispose();
  await index.dispose();
});

test('[VI41] a save writes the changes', async () => {
  const index = await make(900);
  const file = createMemoryFile();
  const { blocksWritten } = index.save(file, 1);
  expect(blocksWritten).toBe(file.blocks().length - 1); // of two headers, one
  const before = file.writes.length;
  // Nothing changed: what belongs to no slot, and the header.
  expect(index.save(file, 2).blocksWritten).toBe(2);
  await index.add(899, vectors[898]!.map((value) => -value)); // prettier-ignore
  // The page of the slot in vectors, keys, hashes, states, links, levels and upperAt (upper: by chance), and those two.
  expect(index.save(file, 3).blocksWritten).toBeLessThanOrEqual(10);
  expect(file.writes.length - before).toBeLessThanOrEqual(12);
  expect(blocksWritten).toBeGreaterThan(10);
  // Blocks are used again: the file does not grow with every save.
  const { length } = file.blocks();
  for (let seq = 4; seq < 20; seq++) {
    await index.add(899, vectors[seq]!.map((value) => -value)); // prettier-ignore
    index.save(file, seq);
  }
  expect(file.blocks().length).toBeLessThanOrEqual(length + 10);
  expect((await open(file)).seq).toBe(19);
  await index.dispose();
});

describe('[VI42] a crash during a save', () => {
  let index: VectorIndex;
  let oldAnswers: unknown;
  let newAnswers: unknown;
  let saved: MemoryFile;
  beforeAll(async () => {
    index = await make();
    saved = createMemoryFile();
    index.save(saved, 1);
    oldAnswers = answers(index);
    for (const i of range(100, 600)) await index.add(i + 1, vectors[i]!);
    newAnswers = answers(index);
    expect(newAnswers).not.toEqual(oldAnswers);
  });
  type Fate = (block: number) => 'lost' | 'written' | 'torn';
  const fates: [string, Fate][] = [
    ['lost', () => 'lost'],
    ['written', () => 'written'],
    ['torn', () => 'torn'],
    ['lost but the header', (block) => (block < 2 ? 'written' : 'lost')],
    ['mixed', (block) => (['lost', 'written', 'torn'] as const)[block % 3]!],
  ];
  test.each(fates)('unflushed blocks %s: the old or the new one, whole', async (_, fate) => {
    const seen = new Set<number>();
    for (let calls = 0; ; calls++) {
      const file = createMemoryFile(saved.blocks());
      file.failAfter = calls;
      let isDone = false;
      try {
        index.save(file, 2);
        isDone = true;
      } catch (error) {
        expect((error as Error).message).toBe('the disk is gone');
      }
      const opened = await open(file.crash(fate));
      seen.add(opened.seq);
      expect(answers(opened.index)).toEqual(opened.seq === 1 ? oldAnswers : newAnswers);
      if (isDone) expect(opened.seq).toBe(2);
      // A save succeeds over the files the crash left.
      opened.index.save(file.crash(fate), 3);
      await opened.index.dispose();
      if (isDone) break;
    }
    expect([...seen]).toEqual([1, 2]);
  });

  test('after a save whose last flush failed, the next one writes over nothing that its header names', async () => {
    const own = await make();
    const start = createMemoryFile();
    own.save(start, 1);
    await own.dispose();
    for (let calls = 0, isDone = false; !isDone; calls++) {
      const file = createMemoryFile(start.blocks());
      const { index: each } = await open(file);
      for (const i of range(100, 600)) await each.add(i + 1, vectors[i]!);
      const { flush } = file;
      file.flush = () => {
        if (file.writes.at(-1)! < 2) throw new Error('the disk is gone'); // the header is written
        flush();
      };
      expect(() => each.save(file, 2)).toThrow('the disk is gone');
      const middle = answers(each);
      file.flush = flush;
      for (const i of range(200, 700)) await each.add(i + 1, vectors[i]!);
      file.failAfter = calls;
      try {
        each.save(file, 3);
        isDone = true;
      } catch {
        // Looked at below.
      }
      const opened = await open(file.crash(() => 'written'));
      expect(opened.seq).toBe(isDone ? 3 : opened.seq);
      expect([opened.seq, answers(opened.index)]).toEqual([opened.seq, opened.seq === 2 ? middle : answers(each)]);
      await opened.index.dispose();
      await each.dispose();
    }
  });

  test('the first save of all: nothing or everything', async () => {
    for (let calls = 0; ; calls++) {
      const file = createMemoryFile();
      file.failAfter = calls;
      let isDone = false;
      try {
        index.save(file, 2);
        isDone = true;
      } catch {
        // Looked at below.
      }
      const opened = await openVectorIndex(
        options,
        file.crash(() => (isDone ? 'lost' : 'written')),
      );
      if (opened !== null) expect(answers(opened.index)).toEqual(newAnswers);
      if (!isDone) expect(opened === null || opened.seq === 2).toBe(true);
      await opened?.index.dispose();
      if (isDone) return expect(opened).not.toBeNull();
    }
  });

  test('a save that failed is made up for by the next one', async () => {
    const file = createMemoryFile();
    const other = await make();
    other.save(file, 1);
    for (const i of range(20, 600)) await other.add(i + 1, vectors[i]!);
    file.failAfter = 3;
    expect(() => other.save(file, 2)).toThrowError('the disk is gone');
    file.failAfter = null;
    other.save(file, 3);
    const opened = await open(file);
    expect(answers(opened.index)).toEqual(answers(other));
    await opened.index.dispose();
    await other.dispose();
  });
});

test('[VI43] damage is said, by its place, and can be written over', async () => {
  const index = await make();
  const file = createMemoryFile();
  index.save(file, 1);
  const blocks = range(file.blocks().length - 2, 2);
  for (const block of blocks) {
    const damaged = createMemoryFile(file.blocks());
    damaged.damage(block);
    await expect(openVectorIndex(options, damaged)).rejects.toMatchObject({ code: 'hash_mismatch', data: { block } });
    index.save(damaged, 2);
    expect((await open(damaged)).seq).toBe(2);
  }
  const swapped = createMemoryFile(file.blocks());
  swapped.copyBlock(3, 2);
  await expect(openVectorIndex(options, swapped)).rejects.toMatchObject({ code: 'hash_mismatch' });
  // The same page as an older generation wrote it.
  const renewed = createMemoryFile(file.blocks());
  index.save(renewed, 2);
  index.save(renewed, 3);
  const places = renewed.blocks().flatMap(({ name }, block) => (name.startsWith('extra 0') ? [block] : []));
  const refusals = places.map(async (place) => {
    const stale = createMemoryFile(renewed.blocks());
    stale.copyBlock(places[(places.indexOf(place) + 1) % places.length]!, place);
    return openVectorIndex(options, stale).then(
      () => 'opened',
      ({ code }) => code as string,
    );
  });
  expect(await Promise.all(refusals)).toContain('hash_mismatch');
  const short = createMemoryFile(file.blocks().slice(0, -1));
  await expect(openVectorIndex(options, short)).rejects.toMatchObject({ code: 'hash_mismatch' });
  const headless = createMemoryFile(file.blocks());
  headless.damage(0);
  headless.damage(1);
  await expect(openVectorIndex(options, headless)).rejects.toMatchObject({ code: 'hash_mismatch' });
  await index.dispose();
});

test('[VI44] an index of another shape is refused', async () => {
  const index = await make();
  const file = createMemoryFile();
  index.save(file, 1);
  for (const other of [{ dim: 201 }, { metric: 'l2' }, { storage: 'int8' }, { m: 5 }] as const) {
    await expect(openVectorIndex({ ...options, ...other }, file)).rejects.toMatchObject({ code: 'invalid_option' });
  }
  const newer = file.blocks().map(({ name, bytes }) => ({
    name,
    bytes: Buffer.from(Buffer.from(bytes).toString('latin1').replace('"version":1', '"version":9'), 'latin1'),
  }));
  await expect(openVectorIndex(options, createMemoryFile(newer))).rejects.toMatchObject({ code: 'unsupported' });
  await index.dispose();
});
