import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { deriveFleetKeys } from '../../server/fleet/fleet-keys.ts';
import { followReleases } from './follow-releases.ts';
import { createReportReader } from './node-report.ts';
import { type PublishedAdapter, readRecord, type ReleaseRecord, writeRecord } from './release-record.ts';
import type { ReleaseStore, StoredRecord } from './release-store.ts';

const keys = deriveFleetKeys('the secret of the fleet in these tests');
const adapter: PublishedAdapter = { model: 'm', name: 'style', sha256: 'ab'.repeat(32), sizeBytes: 10, modelHash: 'h', key: 'k', signature: 's' }; // prettier-ignore
const recordOf = (number: number, id: string | null = null): ReleaseRecord => ({
  committed: { number, adapters: [adapter] },
  previous: null,
  proposal: id === null ? null : { id, members: [], limitMs: 1000, number: number + 1, adapters: [] },
});

/** A node, the record of its store, and what it does. */
function open(kept: { text: string | null } = { text: null }) {
  const clock = createManualClock();
  const stored: { text: string | null; revision: number } = { text: null, revision: 3 };
  const writes: { record: ReleaseRecord; revision: number }[] = [];
  const reports: string[] = [];
  const logs: string[] = [];
  const calls: string[] = [];
  const failing = { prepare: null as string | null, activate: null as string | null, kept: null as string | null };
  let onRecord = (_: StoredRecord): void => {};
  const read = createReportReader(keys, clock, () => {});
  const store = {
    read: async () => (stored.text === null ? null : { ...stored, text: stored.text, ageMs: 0 }),
    write: async (text: string, revision: number) => void writes.push({ record: readRecord(keys, text)!, revision }),
    watch: (callback: typeof onRecord) => void (onRecord = callback),
    async report(_: string, text: string) {
      const { proposal, state, reason, modelHashes } = read(text)!.report;
      reports.push([proposal, state, reason, ...Object.values(modelHashes)].filter((part) => part !== '').join(' '));
    },
  } as unknown as ReleaseStore;
  const run = (name: 'prepare' | 'activate'): void => {
    calls.push(name);
    if (failing[name] !== null) throw new Error(failing[name]);
  };
  const releases = followReleases({
    store,
    keys,
    clock,
    logger: { log: (level, _, { reason, number }) => void logs.push(`${level} ${String(reason ?? number)}`) },
    adapters: {
      prepare: async () => (run('prepare'), { m: 'h1' }),
      activate: async () => run('activate'),
      discard: () => void calls.push('discard'),
      upload: async (all) => void calls.push(`upload ${all.length}`),
    },
    kept: {
      read: () => kept.text,
      write(text) {
        if (failing.kept !== null) throw new Error(failing.kept);
        kept.text = text;
      },
    },
  });
  releases.join('http://a');
  const show = async (record: ReleaseRecord | string): Promise<void> => {
    stored.text = typeof record === 'string' ? record : writeRecord(keys, record);
    onRecord({ text: stored.text, revision: stored.revision, ageMs: 0 });
    await settle();
  };
  const beat = async (): Promise<void> => {
    await releases.beat(clock.now());
    await settle();
  };
  return { clock, stored, writes, reports, logs, calls, failing, releases, show, beat, kept };
}
const serves = ({ releases }: ReturnType<typeof open>): boolean => {
  try {
    releases.check();
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'overloaded', isRetryable: true });
    return false;
  }
};

test('[RL1] a node reports what it prepares, and that it is active after the commit', async () => {
  const { show, reports, calls } = open();
  await show(recordOf(5));
  expect(reports).toEqual([]);
  await show(recordOf(5, 'p'));
  await show(recordOf(5, 'p'));
  expect(reports).toEqual(['p prepared h1']);
  await show(recordOf(6));
  expect(reports).toEqual(['p prepared h1', 'p active']);
  await show(recordOf(7));
  expect([reports.length, calls]).toEqual([2, ['activate', 'prepare', 'activate', 'activate']]);
});

test('[RL2] a node reports why it cannot prepare', async () => {
  const { show, reports, failing } = open();
  failing.prepare = 'x'.repeat(600);
  await show(recordOf(5));
  await show(recordOf(5, 'p'));
  expect(reports).toEqual([`p refused ${'x'.repeat(500)}`]);
});

test('[RL5] a node reads the record each 0.4 s during a publication, and removes one that is abandoned', async () => {
  const { show, clock, writes, calls } = open();
  await show(recordOf(5));
  expect(clock.numTimers).toBe(0);
  for (const id of ['p', 'p', 'q']) {
    await show(recordOf(5, id));
    expect(clock.numTimers).toBe(2);
  }
  expect(calls.filter((call) => call === 'prepare')).toHaveLength(2);
  clock.advance(5999);
  await settle();
  expect(writes).toEqual([]);
  clock.advance(1);
  await settle();
  expect(writes).toEqual([{ record: recordOf(5), revision: 3 }]);
  await show(recordOf(5));
  expect(clock.numTimers).toBe(0);
});

test('[RL5] the record is read before the lease of a publication ends', async () => {
  const node = open();
  await node.show(recordOf(5));
  await node.beat();
  await node.show(recordOf(5, 'p'));
  for (let i = 0; i < 8; i++) {
    node.clock.advance(400);
    await settle();
  }
  expect(serves(node)).toBe(true);
});

test('[RL1] a record without the signature of the fleet is a problem until another one comes, and confirms nothing', async () => {
  const node = open();
  const { show, beat, clock, releases, logs } = node;
  await show(recordOf(5));
  await beat();
  for (let i = 0; i < 2; i++) await show('{}');
  expect(releases.problem).toBe('the record of releases does not have the signature of this fleet');
  expect(logs).toEqual(['info 5', `error ${releases.problem}`]);
  clock.advance(6000);
  await beat();
  expect(serves(node)).toBe(true);
  clock.advance(1);
  expect([serves(node), releases.number]).toEqual([false, 0]);
  await show(recordOf(5));
  expect(releases.problem).toBeNull();
  await beat();
  expect([serves(node), releases.number]).toEqual([true, 5]);
});

test('[RL8] an older record confirms nothing, and is replaced with its files at its own revision', async () => {
  const node = open();
  await node.show({ ...recordOf(5), previous: { number: 4, adapters: [adapter, adapter] } });
  await node.beat();
  node.clock.advance(6001);
  node.stored.text = writeRecord(keys, recordOf(4));
  await node.beat();
  expect([serves(node), node.calls]).toEqual([false, ['activate', 'upload 3']]);
  expect(node.writes).toMatchObject([{ record: { committed: { number: 5 } }, revision: 3 }]);
  node.stored.text = null;
  await node.beat();
  expect(node.writes[1]).toMatchObject({ record: { committed: { number: 5 } }, revision: 0 });
});

test('[RL4] a node that saw the record without reading it, or read it too slowly, is not ready: it refuses requests', async () => {
  const node = open();
  const { show, beat, releases, clock } = node;
  const state = () => [releases.isStarting, serves(node)];
  await show(recordOf(5));
  expect(state()).toEqual([true, false]);
  await releases.beat(clock.now() - 6001);
  await settle();
  expect(state()).toEqual([true, false]);
  await beat();
  expect(state()).toEqual([false, true]);
});

test('[RL7] a release that cannot be activated is a problem, and ends the start', async () => {
  const node = open();
  const { show, beat, releases, failing, logs, calls } = node;
  failing.activate = 'no memory';
  let isStarted = false;
  void releases.started.then(() => (isStarted = true));
  expect(releases.isStarting).toBe(true);
  await show(recordOf(5));
  await beat();
  const problem = 'release 5 cannot be activated: no memory';
  expect([releases.problem, releases.isStarting, isStarted, serves(node)]).toEqual([problem, false, true, false]);
  expect([logs, calls]).toEqual([[`error ${problem}`], ['activate', 'activate']]);
  failing.activate = null;
  await beat();
  expect([releases.problem, serves(node)]).toEqual([null, true]);
});

test('[RL8] a record that cannot be kept is a problem, and active all the same', async () => {
  const node = open();
  node.failing.kept = 'the disk is full';
  await node.show(recordOf(5));
  await node.beat();
  expect(node.releases.problem).toBe('the record of releases cannot be written here: the disk is full');
  expect([serves(node), node.releases.number]).toEqual([true, 5]);
});

test('[RL8] the record that was kept is no proposal', async () => {
  const { show, kept } = open();
  await show(recordOf(5, 'p'));
  expect(readRecord(keys, kept.text!)).toEqual(recordOf(5));
});

test('[RL6] an adapter is published by its model and its name', async () => {
  const { show, releases } = open();
  expect(releases.isPublished('m', 'style')).toBe(false);
  await show(recordOf(5));
  const asked = [['m', 'style'], ['m', 'other'], ['n', 'style']] as const; // prettier-ignore
  expect(asked.map(([model, name]) => releases.isPublished(model, name))).toEqual([true, false, false]);
});

test('[RL5] a node that stops follows nothing, and one whose store is away gives up its start', async () => {
  const { show, beat, clock, releases, calls } = open();
  expect(releases.isStarting).toBe(true);
  releases.giveUpStart();
  expect(releases.isStarting).toBe(false);
  await show(recordOf(5, 'p'));
  releases.stop();
  expect(clock.numTimers).toBe(0);
  calls.length = 0;
  await show(recordOf(6));
  await beat();
  expect(calls).toEqual([]);
});
