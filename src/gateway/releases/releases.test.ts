import { describe, expect, test } from 'vitest';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { createMemoryBus } from '../../../test/support/memory-bus.ts';
import { createMemoryKeys } from '../../../test/support/test-server.ts';
import { deriveFleetKeys } from '../../server/fleet/fleet-keys.ts';
import { createKeyStore } from '../../server/keys/key-store.ts';
import { silentLogger } from '../../server/logger.ts';
import { createGateway } from '../gateway.ts';
import type { UpstreamResponse } from '../types.ts';
import { followReleases } from './follow-releases.ts';
import { type PublishedAdapter, type ReleaseRecord, readRecord, writeRecord } from './release-record.ts';
import type { ReleaseStore, StoredRecord } from './release-store.ts';

const keys = deriveFleetKeys('the secret of the fleet in these tests');
const adapter: PublishedAdapter = { model: 'm', name: 'style', sha256: 'ab'.repeat(32), sizeBytes: 10, modelHash: 'h', key: 'k', signature: 's' }; // prettier-ignore
const recordOf = (number: number, more: Partial<ReleaseRecord> = {}): ReleaseRecord => ({
  committed: { number, adapters: [adapter] },
  previous: null,
  proposal: null,
  ...more,
});

/** A store with one record; `show` is a watch that brings it. */
function createStore() {
  const watchers: ((record: StoredRecord) => void)[] = [];
  const state: { text: string | null; isAway: boolean } = { text: null, isAway: false };
  const stored = (): StoredRecord | null => (state.text === null ? null : { text: state.text, revision: 1, ageMs: 0 });
  const none = async (): Promise<never> => Promise.reject(new Error('not used here'));
  const store: ReleaseStore = {
    read: async () => (state.isAway ? Promise.reject(new Error('away')) : stored()),
    async write(text) {
      state.text = text;
      return 2;
    },
    watch: (onRecord) => void watchers.push(onRecord),
    members: async () => [],
    report: async () => {},
    watchReports: none,
    hasFile: none,
    putFile: none,
    getFile: none,
    deleteFile: none,
  };
  return {
    store,
    state,
    show(record: ReleaseRecord) {
      state.text = writeRecord(keys, record);
      for (const onRecord of watchers) onRecord(stored()!);
    },
  };
}

describe('a record of releases', () => {
  test('[RL1] is read as it was written, and not if a byte differs or a part has another shape', () => {
    const record = recordOf(5, {
      proposal: { id: 'p', members: ['http://a'], limitMs: 1000, number: 6, adapters: [] },
    });
    const text = writeRecord(keys, record);
    expect(readRecord(keys, text)).toEqual(record);
    expect(readRecord(deriveFleetKeys('another secret, of some other fleet'), text)).toBeNull();
    expect(readRecord(keys, text.replace(':5,', ':7,'))).toBeNull();
    for (const broken of ['', '[]', '{}', 'null', 'x'.repeat(2 ** 20 + 1)]) expect(readRecord(keys, broken)).toBeNull();
    const forged = (change: object): string => writeRecord(keys, { ...record, ...change } as ReleaseRecord);
    for (const change of [
      { committed: { number: -1, adapters: [] } },
      { committed: { number: 1, adapters: {} } },
      { committed: { number: 1, adapters: Array.from({ length: 65 }, () => adapter) } },
      { committed: { number: 1, adapters: [{ ...adapter, name: '../x' }] } },
      { committed: { number: 1, adapters: [{ ...adapter, sha256: '../../x' }] } },
      { committed: { number: 1, adapters: [{ ...adapter, sizeBytes: 1.5 }] } },
      { previous: { number: 1 } },
      { proposal: { ...record.proposal!, limitMs: 1e12 } },
      { proposal: { ...record.proposal!, members: 'all' } },
    ]) {
      expect(readRecord(keys, forged(change))).toBeNull();
    }
  });
});

describe('a node', () => {
  function openNode({ store, state, show } = createStore(), kept: { text: string | null } = { text: null }) {
    const clock = createManualClock();
    const calls: string[] = [];
    let active: readonly string[] = [];
    const releases = followReleases({
      store,
      keys,
      clock,
      logger: silentLogger,
      adapters: {
        async prepare() {
          calls.push('prepare');
          return {};
        },
        async activate(adapters) {
          calls.push('activate');
          active = adapters.map(({ sha256 }) => sha256.slice(0, 2));
        },
        discard: () => void calls.push('discard'),
        async upload() {},
      },
      kept: { read: () => kept.text, write: (text) => void (kept.text = text) },
    });
    releases.join('http://node');
    const beat = async (): Promise<void> => {
      await releases.beat(clock.now());
      await settle();
    };
    return { clock, state, show, calls, releases, beat, active: () => active };
  }

  test('[RL5] serves for 6 s without the record, and for 1.5 s during a publication', async () => {
    const { clock, show, state, releases, beat } = openNode();
    expect(releases.isStarting).toBe(true);
    expect(() => releases.check()).toThrow('try again');
    show(recordOf(5));
    await beat();
    expect([releases.isStarting, releases.number]).toEqual([false, 5]);
    state.isAway = true;
    clock.advance(6000);
    releases.check();
    clock.advance(1);
    expect(() => releases.check()).toThrow('because NATS is away');
    expect(releases.number).toBe(0);
    state.isAway = false;
    await beat();
    releases.check();
    show(recordOf(5, { proposal: { id: 'p', members: [], limitMs: 60_000, number: 6, adapters: [] } }));
    await beat();
    state.isAway = true;
    clock.advance(1500);
    releases.check();
    clock.advance(1);
    expect(() => releases.check()).toThrow('because NATS is away');
  });

  test('[RL5] does not serve between a commit and its activation', async () => {
    const { show, releases, beat, calls } = openNode();
    show(recordOf(5));
    await beat();
    show(recordOf(6));
    expect(() => releases.check()).toThrow('has not loaded the latest adapters');
    await settle();
    releases.check();
    expect(calls).toEqual(['activate', 'activate']);
  });

  test('[RL8] keeps its release when the store shows an older one, and writes it back', async () => {
    const { state, show, releases, beat } = openNode();
    show(recordOf(5));
    await beat();
    show(recordOf(4));
    await settle();
    expect(readRecord(keys, state.text!)!.committed.number).toBe(5);
    state.text = null;
    await beat();
    expect(readRecord(keys, state.text!)!.committed.number).toBe(5);
    await beat();
    expect(releases.number).toBe(5);
  });

  test('[RL8] keeps its release after a restart, whatever the store shows: none, an older one, or an older one with a proposal', async () => {
    const shared = createStore();
    const kept = { text: null };
    const before = openNode(shared, kept);
    shared.show(recordOf(5));
    await before.beat();
    before.releases.stop();
    const replayed = recordOf(4, { proposal: { id: 'p', members: ['http://node'], limitMs: 60_000, number: 9, adapters: [] } }); // prettier-ignore
    for (const text of [null, writeRecord(keys, recordOf(4)), writeRecord(keys, replayed)]) {
      const { state, releases, beat, calls } = openNode(shared, kept);
      state.text = text;
      await beat();
      expect(readRecord(keys, state.text!)).toEqual(recordOf(5));
      await beat();
      expect([releases.number, calls]).toEqual([5, ['activate']]);
      releases.stop();
    }
  });

  test('[RL9] keeps the same one of two releases with one number as every other node, whichever it saw first', async () => {
    const [low, high] = ['aa', 'bb'].map((digits) => recordOf(5, { committed: { number: 5, adapters: [{ ...adapter, sha256: digits.repeat(32) }] } })); // prettier-ignore
    for (const order of [
      [low!, high!],
      [high!, low!],
    ]) {
      const shared = createStore();
      const kept = { text: null };
      const { beat, releases, active } = openNode(shared, kept);
      for (const record of order) {
        shared.show(record);
        await settle();
        await beat();
      }
      releases.check();
      expect([active(), releases.number]).toEqual([['bb'], 5]);
      expect(readRecord(keys, shared.state.text!)).toEqual(high);
      releases.stop();
      shared.state.text = writeRecord(keys, low!);
      const restarted = openNode(shared, kept);
      await restarted.beat();
      await restarted.beat();
      expect(restarted.active()).toEqual(['bb']);
      shared.show(recordOf(9)); // a gap: numbers are times
      await settle();
      expect([restarted.active(), restarted.releases.number]).toEqual([['ab'], 9]);
    }
  });

  test('[RL1] frees what it prepared when the publication is aborted', async () => {
    const { show, beat, calls } = openNode();
    show(recordOf(5, { proposal: { id: 'p', members: [], limitMs: 60_000, number: 6, adapters: [] } }));
    await beat();
    show(recordOf(5));
    await settle();
    expect(calls).toEqual(['activate', 'prepare', 'discard']);
  });
});

test('[RL6] a gateway sends requests for a published adapter to nodes with the committed release only, and waits for the first', async () => {
  const clock = createManualClock();
  const { store, show } = createStore();
  const releaseOf: Record<string, number> = { 'http://a': 4, 'http://b': 4 };
  const asked: string[] = [];
  const answer = (status: number, body: object): UpstreamResponse => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: (async function* () {
      yield new TextEncoder().encode(JSON.stringify(body));
    })(),
  });
  const gateway = createGateway({
    nodes: ['http://a', 'http://b'],
    upstream: {
      async send(url, { target }) {
        if (target !== '/health') asked.push(url);
        return answer(200, {});
      },
      close() {},
    },
    keys: createKeyStore(createMemoryKeys(), () => 1000),
    isOpen: true,
    browsers: { hosts: ['gateway'], corsOrigins: [] },
    clock,
    shared: { bus: createMemoryBus().bus, keys, releases: store },
    openAffinity: () => ({
      numTexts: 0,
      plan: () => ({ numTokens: 1, warmTokens: () => 0, headers: {}, learn() {} }),
      async checkNode(node) {
        node.fleet = { version: '1', models: [], numRequests: 0, release: releaseOf[node.url]! };
      },
      forgetNode() {},
      close() {},
    }),
  });
  await gateway.ready();
  const ask = (model: string) =>
    gateway.handle({
      method: 'POST',
      target: '/v1/completions',
      headers: new Headers({ host: 'gateway', 'content-type': 'application/json' }),
      readBody: async () => new TextEncoder().encode(JSON.stringify({ model, prompt: 'x' })),
      signal: new AbortController().signal,
    });
  show(recordOf(5));
  await settle();
  const waiting = ask('m:style');
  await settle();
  expect(asked).toEqual([]);
  releaseOf['http://b'] = 5;
  clock.advance(20);
  expect((await waiting).status).toBe(200);
  for (let i = 0; i < 4; i++) await ask('m:style');
  expect(new Set(asked)).toEqual(new Set(['http://b']));
  for (let i = 0; i < 4; i++) await ask('m');
  expect(new Set(asked)).toEqual(new Set(['http://a', 'http://b']));
  releaseOf['http://b'] = 4;
  show(recordOf(6));
  const refused = ask('m:style');
  for (let i = 0; i < 120; i++) {
    await settle();
    clock.advance(20);
  }
  expect((await refused).status).toBe(503);
  await gateway.shutDown(0);
});
