import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../../core/errors.ts';
import { START_MS, testMemoryStore } from '../memory-store.contract.ts';
import { idOf, recordOf } from '../store-setup.contract.ts';
import { openLoggedStore, type StoreLog } from './logged-store.ts';

/** A log without a disk, which outlives the stores on it and fails on demand. */
function createFakeLog() {
  const fake = { entries: [] as Uint8Array[], isFull: false, numRewrites: 0 };
  const check = (): void => {
    if (fake.isFull) throw new RuvLLMError('disk_full', 'no space left');
  };
  const open = (): StoreLog => ({
    get sizeBytes() {
      return fake.entries.reduce((sum, { length }) => sum + length, 0);
    },
    async append(entry) {
      check();
      fake.entries.push(entry.slice());
    },
    async rewrite(entries) {
      check();
      fake.numRewrites++;
      fake.entries = entries.map((entry) => entry.slice());
    },
    async close() {},
  });
  return { fake, open };
}

function setUp() {
  const clock = { ms: START_MS };
  const { fake, open } = createFakeLog();
  const reports: string[] = [];
  const openStore = () =>
    openLoggedStore({ log: open(), entries: fake.entries, now: () => clock.ms, report: (text) => reports.push(text) });
  return { clock, fake, openStore, reports };
}

testMemoryStore('logged', async () => {
  const { clock, openStore } = setUp();
  return { clock, store: await openStore(), reopen: openStore };
});

describe('the log', () => {
  test('reopening finds records with versions, times, vectors and edges, also after a rewrite', async () => {
    const { clock, openStore, fake } = setUp();
    const first = await openStore();
    await first.put([recordOf(1, { vector: Float32Array.of(0.6, 0.8), space: 's' }), recordOf(2)]);
    clock.ms += 1000;
    await first.put([recordOf(1, { vector: Float32Array.of(0.8, 0.6), space: 's' })]);
    await first.putEdges('alpha', [{ from: idOf(1), to: idOf(2), relation: 'r', weight: 0.5, confidence: 1 }]);
    const seen = async (store: typeof first) => ({
      records: await store.get('alpha', [idOf(1), idOf(2)]),
      edges: await store.edgesOf('alpha', { ids: [idOf(1)], direction: 'out', limit: 9 }),
    });
    const expected = await seen(first);
    expect(expected.records[0]).toMatchObject({ version: 2, createdMs: START_MS, updatedMs: START_MS + 1000 });
    clock.ms += 5000;
    const second = await openStore();
    expect(await seen(second)).toEqual(expected);
    await second.compact();
    expect(fake.entries).toHaveLength(2);
    const third = await openStore();
    expect(await seen(third)).toEqual(expected);
    await expect(third.put([{ ...recordOf(1), ifVersion: 1 }])).rejects.toMatchObject({ code: 'conflict' });
  });

  test('a full disk refuses the change, and the next change that succeeds brings the log up to date', async () => {
    const { fake, openStore } = setUp();
    const store = await openStore();
    await store.put([recordOf(1)]);
    fake.isFull = true;
    await expect(store.put([recordOf(2)])).rejects.toMatchObject({ code: 'disk_full', isRetryable: true });
    expect((await store.stats(null)).degraded).toContain('no space left');
    fake.isFull = false;
    await store.put([recordOf(3)]);
    expect((await store.stats(null)).degraded).toBeNull();
    const again = await openStore();
    expect((await again.get('alpha', [1, 2, 3].map(idOf))).every((record) => record !== null)).toBe(true);
  });

  test('erasing a tenant leaves none of its bytes in the log', async () => {
    const { fake, openStore } = setUp();
    const store = await openStore();
    await store.put([recordOf(1, { body: { text: 'a secret word' } }), recordOf(2, { tenant: 'beta' })]);
    await store.eraseTenant('alpha');
    const text = fake.entries.map((entry) => new TextDecoder().decode(entry)).join('');
    expect(text).not.toContain('secret');
    expect(text).toContain('beta');
  });

  test('an entry that cannot be read is reported, and the others are kept', async () => {
    const { fake, openStore, reports } = setUp();
    const store = await openStore();
    await store.put([recordOf(1)]);
    await store.put([recordOf(2)]);
    fake.entries[0] = Uint8Array.of(1, 2, 3);
    const again = await openStore();
    expect((await again.get('alpha', [idOf(1), idOf(2)])).map((record) => record !== null)).toEqual([false, true]);
    expect(reports).toEqual(['1 changes of the memory could not be repeated']);
  });
});
