import { describe, expect, test, vi } from 'vitest';
import { openTestMemory, wordEmbedder } from '../../test/support/test-memory.ts';
import { createInMemoryStore } from './store/in-memory/in-memory-store.ts';
import type { MemoryStore } from './types.ts';

/** Stays open when a memory is closed, as a folder does. */
const openStore = (): MemoryStore => ({ ...createInMemoryStore({ now: () => 1000 }), close: async () => {} });
const open = async (store: MemoryStore, fingerprint: string | null, reindex = false) =>
  openTestMemory({ store, reindex, embedder: fingerprint === null ? null : { ...wordEmbedder, fingerprint } });

test('[SE5] another embedder than the last time is reported once, each way; the first, the same and none are not', async () => {
  const store = openStore();
  expect((await open(store, 'words-1')).reports).toEqual([]);
  expect((await open(store, 'words-1')).reports).toEqual([]);
  expect((await open(store, null)).reports).toEqual([]);
  const other = await open(store, 'words-2');
  expect(other.reports).toEqual([expect.stringMatching(/changed from words-1 to words-2: .* not found by meaning/)]);
  expect((await open(store, 'words-2')).reports).toEqual([]);
  expect((await open(store, 'words-1')).reports.length).toBe(1);
});

test('[SE1] [SE5] finds records by meaning only with the embedder that added them, by words with any', async () => {
  const store = openStore();
  const first = await open(store, 'words-1');
  const id = await first.add('alice', { text: 'the blue whale' });
  const found = async (memory: typeof first) =>
    (await memory.search('alice', { text: 'blue whale' })).results.map(({ record, similarity, lexical }) => [record.id, similarity !== null, lexical !== null]); // prettier-ignore
  expect(await found(first)).toEqual([[id, true, true]]);
  expect(await found(await open(store, 'words-2'))).toEqual([[id, false, true]]);
  expect(await found(await open(store, 'words-1'))).toEqual([[id, true, true]]);
});

describe('re-indexing', () => {
  const texts = Array.from({ length: 100 }, (_, i) => `text ${String.fromCharCode(97 + (i % 26))}${i} about whales`);
  async function fill(store: MemoryStore) {
    const first = await open(store, 'words-1');
    for (const [i, text] of texts.entries()) await first.add(i % 2 === 0 ? 'alice' : 'bob', { text });
    await first.sessions.addTurn('alice', 's', { query: 'where do whales live', answer: 'in the sea', requestId: null, ...(await first.embed('where do whales live').then((one) => ({ embedding: one!.vector, space: one!.space }))) }, {}); // prettier-ignore
    await first.close();
  }
  const countIn = async (store: MemoryStore, tenant: string, space: string) => {
    const { records } = await store.find(tenant, { kinds: ['document', 'qa-pair'], order: 'oldest', limit: 1000 });
    return records.filter((record) => record.space === space).length;
  };

  test('[SE9] embeds all records again and reports it; texts, fields and times stay', async () => {
    const store = openStore();
    await fill(store);
    const before = await store.find('alice', { kinds: ['document'], order: 'oldest', limit: 1000 });
    const memory = await open(store, 'words-2', true);
    expect(memory.reports.join()).toContain('re-indexed, which begins in the background');
    expect(
      (await memory.search('alice', { text: 'whales' })).results.filter(({ similarity }) => similarity !== null),
    ).toEqual([]);
    await memory.reindex();
    expect(memory.reports.at(-1)).toBe('re-indexed 101 records');
    expect((await memory.stats(null)).reindex).toBeNull();
    expect((await memory.search('alice', { text: 'whales' })).results[0]!.similarity).toBeGreaterThan(0.3);
    const after = await store.find('alice', { kinds: ['document'], order: 'oldest', limit: 1000 });
    const plain = ({ id, body, fields, createdMs }: (typeof after.records)[number]) => ({
      id,
      body,
      fields,
      createdMs,
    });
    expect(after.records.map(plain)).toEqual(before.records.map(plain));
    expect([await countIn(store, 'alice', 'words-2'), await countIn(store, 'bob', 'words-2')]).toEqual([51, 50]);
    // Once: the next start has nothing to do.
    const put = vi.spyOn(store, 'put');
    const next = await open(store, 'words-2', true);
    const numPuts = put.mock.calls.length;
    await next.reindex();
    expect([next.reports, put.mock.calls.length]).toEqual([[], numPuts]);
  });

  test('[SE14] an embedder that comes late finds what was stored before it, also after a restart, and by words nothing waits', async () => {
    const store = openStore();
    await fill(store);
    await (await open(store, 'words-1', true)).reindex(); // done: nothing is looked at again
    const waiting = await open(store, null, true);
    expect(waiting.spaces).toEqual({ texts: null, requests: null });
    const ids = [await waiting.add('alice', { text: 'a zebra in the zoo' })];
    const find = async (memory: typeof waiting) =>
      (await memory.search('alice', { text: 'zebra zoo' })).results.map(({ record, similarity }) => [record.id, similarity !== null]); // prettier-ignore
    expect(await find(waiting)).toEqual([[ids[0], false]]);
    await waiting.close(); // before the embedder came
    const late = await open(store, null, true);
    await late.useEmbedder({ embedder: { ...wordEmbedder, fingerprint: 'words-1' } });
    expect(late.spaces).toEqual({ texts: 'words-1', requests: 'words-1' });
    await late.reindex();
    expect(late.reports.at(-1)).toBe('re-indexed 1 records');
    expect((await find(late))[0]).toEqual([ids[0], true]);
    expect((await late.stats(null)).embedder).toBe('words-1');
    await expect(late.useEmbedder({ embedder: wordEmbedder })).rejects.toMatchObject({ code: 'conflict' });
  });

  test('[SE9] records of an embedder that stood in are embedded again when the first is back', async () => {
    const store = openStore();
    await fill(store);
    await (await open(store, 'words-1', true)).reindex();
    const substitute = await open(store, 'words-2', false);
    await substitute.add('alice', { text: 'a zebra in the zoo' });
    const back = await open(store, 'words-1', true);
    await back.reindex();
    expect(back.reports.at(-1)).toBe('re-indexed 1 records');
    expect(await countIn(store, 'alice', 'words-2')).toBe(0);
  });

  test('[SE9] continues after a crash where it ended, and shows its progress', async () => {
    const store = openStore();
    await fill(store);
    let numLeft = 60;
    const failing = { ...wordEmbedder, fingerprint: 'words-2', embed: (text: string) => { if (numLeft-- <= 0) throw new Error('gone'); return wordEmbedder.embed(text); } }; // prettier-ignore
    const memory = await openTestMemory({ store, embedder: failing });
    await expect(memory.reindex()).rejects.toThrow('gone');
    expect((await memory.stats(null)).reindex).toEqual({ numDone: 51, numTotal: 101 });
    numLeft = Infinity;
    const next = await openTestMemory({ store, embedder: failing });
    const asked = vi.spyOn(failing, 'embed');
    await next.reindex();
    expect(await countIn(store, 'alice', 'words-2')).toBe(51);
    expect(await countIn(store, 'bob', 'words-2')).toBe(50);
    expect(asked.mock.calls.length).toBeLessThanOrEqual(50);
  });

  test('[SE9] closing ends it after a few texts; a deleted record stays deleted', async () => {
    const store = openStore();
    await fill(store);
    const { records } = await store.find('alice', { kinds: ['document'], order: 'oldest', limit: 1 });
    let memory: Awaited<ReturnType<typeof openTestMemory>> | null = null;
    let closing: Promise<void> | null = null;
    const embedder = {
      ...wordEmbedder,
      fingerprint: 'words-2',
      async embed(text: string) {
        if (memory !== null && closing === null) {
          await store.delete('alice', [records[0]!.id]);
          closing = memory.close();
        }
        return wordEmbedder.embed(text);
      },
    };
    memory = await openTestMemory({ store, embedder });
    await memory.reindex();
    await closing;
    expect(await store.get('alice', [records[0]!.id])).toEqual([null]);
    expect(await countIn(store, 'alice', 'words-2')).toBeLessThan(5);
  });
});
