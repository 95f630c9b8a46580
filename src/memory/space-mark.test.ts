import { expect, test } from 'vitest';
import { openTestMemory, wordEmbedder } from '../../test/support/test-memory.ts';
import { createInMemoryStore } from './store/in-memory/in-memory-store.ts';

const open = async (store: ReturnType<typeof createInMemoryStore>, fingerprint: string | null) =>
  openTestMemory({ store, embedder: fingerprint === null ? null : { ...wordEmbedder, fingerprint } });

test('[SE5] another embedder than the last time is reported once, each way; the first, the same and none are not', async () => {
  const store = createInMemoryStore({ now: () => 1000 });
  expect((await open(store, 'words-1')).reports).toEqual([]);
  expect((await open(store, 'words-1')).reports).toEqual([]);
  expect((await open(store, null)).reports).toEqual([]);
  const other = await open(store, 'words-2');
  expect(other.reports).toEqual([expect.stringMatching(/changed from words-1 to words-2: .* not found by meaning/)]);
  expect((await open(store, 'words-2')).reports).toEqual([]);
  expect((await open(store, 'words-1')).reports.length).toBe(1);
});

test('[SE1] [SE5] finds records by meaning only with the embedder that added them, by words with any', async () => {
  const store = createInMemoryStore({ now: () => 1000 });
  const first = await open(store, 'words-1');
  const id = await first.add('alice', { text: 'the blue whale' });
  const found = async (memory: typeof first) =>
    (await memory.search('alice', { text: 'blue whale' })).results.map(({ record, similarity, lexical }) => [record.id, similarity !== null, lexical !== null]); // prettier-ignore
  expect(await found(first)).toEqual([[id, true, true]]);
  expect(await found(await open(store, 'words-2'))).toEqual([[id, false, true]]);
  expect(await found(await open(store, 'words-1'))).toEqual([[id, true, true]]);
});
