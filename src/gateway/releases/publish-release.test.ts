import { describe, expect, test } from 'vitest';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { deriveFleetKeys } from '../../server/fleet/fleet-keys.ts';
import { createNoteWriter } from '../shared/signed-notes.ts';
import { createReportReader, createReportWriter, type NodeReport } from './node-report.ts';
import { type PublishOptions, publishRelease, readReleases } from './publish-release.ts';
import { followCommits } from './release-view.ts';
import {
  compareReleases,
  EMPTY_RECORD,
  isSameAdapter,
  type PublishedAdapter,
  readRecord,
  type ReleaseRecord,
  writeRecord,
} from './release-record.ts';
import type { ReleaseStore, StoredRecord } from './release-store.ts';

const keys = deriveFleetKeys('the secret of the fleet in these tests');
const adapter: PublishedAdapter = { model: 'm', name: 'style', sha256: 'ab'.repeat(32), sizeBytes: 10, modelHash: '', key: 'k', signature: 's' }; // prettier-ignore
const [A, B, C] = ['http://a', 'http://b', 'http://c'];
/** What a node reports about a proposal, and about its commit; null: nothing. `ms`: time that passes before. */
type Answer = (Partial<NodeReport> & { ms?: number }) | null;
const good: readonly Answer[] = [{ state: 'prepared', modelHashes: { m: 'h1' } }, { state: 'active' }];

/** Publishes to a fleet with these nodes, and the record before. */
function publish(
  nodes: Record<string, readonly Answer[]>,
  { record = null as ReleaseRecord | null, ageMs = 0, more = {} as Partial<PublishOptions>, onWrite = (_: ReleaseRecord, _count: number): number | null | Error | undefined => undefined } = {}, // prettier-ignore
) {
  const clock = createManualClock();
  const written: { record: ReleaseRecord; revision: number }[] = [];
  const reports: string[] = [];
  let isStopped = false;
  let onReport = (_: string): void => {};
  const writers = new Map(Object.keys(nodes).map((url) => [url, createReportWriter(keys, clock, url)]));
  const answer = (record: ReleaseRecord, round: 0 | 1): void => {
    for (const [url, answers] of Object.entries(nodes)) {
      const { ms = 0, ...given } = answers[round] ?? {};
      clock.advance(ms);
      const id = record.proposal?.id ?? written[0]!.record.proposal!.id;
      if (answers[round] != null) onReport(writers.get(url)!({ proposal: id, state: 'prepared', reason: '', modelHashes: {}, ...given })); // prettier-ignore
    }
  };
  const none = async (): Promise<never> => Promise.reject(new Error('not used here'));
  const store: ReleaseStore = {
    read: async () => (record === null ? null : { text: writeRecord(keys, record), revision: 7, ageMs }),
    async write(text, revision) {
      const next = readRecord(keys, text)!;
      written.push({ record: next, revision });
      const failed = onWrite(next, written.length);
      if (failed instanceof Error) throw failed;
      if (failed !== undefined) return failed;
      if (next.proposal !== null) answer(next, 0);
      else if (next.committed.number !== (record?.committed.number ?? 0)) answer(next, 1);
      return revision + 1;
    },
    members: async () => [
      ...Object.keys(nodes).map((url) => createNoteWriter(keys, clock, 'node', url)({ isLeaving: false })),
      createNoteWriter(keys, clock, 'node', 'http://left')({ isLeaving: true }),
      createNoteWriter(deriveFleetKeys('another secret, of some other fleet'), clock, 'node', 'http://evil')({}),
    ],
    async watchReports(callback) {
      onReport = callback;
      return { stop: () => (isStopped = true) };
    },
    watch() {},
    report: none,
    hasFile: none,
    putFile: none,
    getFile: none,
    deleteFile: none,
  };
  const outcome = publishRelease({ store, keys, clock, limitMs: 5000, signal: new AbortController().signal, change: () => [adapter], onReport: (url, { state }) => void reports.push(`${url} ${state}`), ...more }); // prettier-ignore
  outcome.catch(() => {});
  return { clock, outcome, written, reports, isStopped: () => isStopped };
}
const recordOf = (number: number, more: Partial<ReleaseRecord> = {}): ReleaseRecord => ({ committed: { number, adapters: [] }, previous: null, proposal: null, ...more }); // prettier-ignore

describe('a publication', () => {
  test('[RL1] is prepared by all nodes, committed, and active on all', async () => {
    const before = recordOf(5);
    const slow: Answer[] = [
      { ms: 30, modelHashes: { m: 'h1' } },
      { ms: 7, state: 'active' },
    ];
    const { outcome, written, reports, clock, isStopped } = publish({ [A!]: good, [B!]: slow }, { record: before });
    const release = { number: 1_700_000_000_000, adapters: [{ ...adapter, modelHash: 'h1' }] };
    const nodes = [A, B].map((url) => ({ url, isActive: true }));
    expect(await outcome).toEqual({ release, nodes, preparedMs: 30, activeMs: 7 });
    expect(written).toMatchObject([
      { record: { ...before, proposal: { members: [A, B], limitMs: 5000, number: release.number, adapters: [adapter] } }, revision: 7 }, // prettier-ignore
      { record: { committed: release, previous: before.committed, proposal: null }, revision: 8 },
    ]);
    expect(reports).toEqual([`${A} prepared`, `${B} prepared`, `${A} active`, `${B} active`]);
    expect([isStopped(), clock.numTimers]).toEqual([true, 0]);
  });

  test('[RL1] has a higher number than the release before it, also if the clock was ahead', async () => {
    const { outcome, written } = publish({ [A!]: good }, { record: recordOf(2_000_000_000_000) });
    expect((await outcome).release.number).toBe(2_000_000_000_001);
    expect(written[0]!.revision).toBe(7);
    const first = publish({ [A!]: good });
    await first.outcome;
    expect([first.written[0]!.revision, first.written[1]!.record.previous!.number]).toEqual([0, 0]);
  });

  test.each<[string, Record<string, readonly Answer[]>, string]>([
    ['that a node refuses', { [A!]: good, [B!]: [{ state: 'refused', reason: 'no room' }], [C!]: [{ state: 'refused', reason: 'no file' }] }, 'http://b: no room; http://c: no file'],
    ['that nodes do not report', { [A!]: good, [B!]: [null], [C!]: [null] }, 'no report within 5 s of http://b, http://c'],
    ['of a model that no node serves', { [A!]: [{ modelHashes: { n: 'h' } }] }, 'no node serves the model m'],
    ['of a model with another file', { [A!]: [{ modelHashes: { m: 'x' } }], [B!]: good, [C!]: good }, 'http://a: its model m is another file, x instead of h1'],
    ['with a report about another proposal', { [A!]: [{ proposal: 'other' }] }, 'no report within 5 s of http://a'],
  ])('[RL2] %s is active on none', async (_, nodes, reason) => {
    const before = recordOf(5);
    const { outcome, written, clock, isStopped } = publish(nodes, { record: before });
    for (let i = 0; i < 50; i++) {
      await settle();
      clock.advance(100);
    }
    await expect(outcome).rejects.toMatchObject({ code: 'conflict', message: `active on no node: ${reason}`, data: { nodes: Object.keys(nodes), reason } }); // prettier-ignore
    expect(written.map(({ record }) => record)).toMatchObject([{ proposal: { limitMs: 5000 } }, before]);
    expect([written[1]!.revision, isStopped()]).toEqual([8, true]);
  }); // prettier-ignore

  test('[RL2] of which a node says nothing after the commit is active on the others', async () => {
    const { outcome, clock } = publish({ [A!]: good, [B!]: [good[0]!, null] });
    for (let i = 0; i < 20; i++) {
      await settle();
      clock.advance(100);
    }
    expect(await outcome).toMatchObject({ nodes: [{ url: A, isActive: true }, { url: B, isActive: false }], activeMs: null }); // prettier-ignore
  });

  test('[RL2] takes the model file of the first node that serves it, or the one it was made for', async () => {
    const other = { ...adapter, model: 'n', modelHash: 'made for' };
    const { outcome } = publish({ [A!]: [{ modelHashes: { n: 'h2' } }, good[1]!], [B!]: good }, { more: { change: () => [adapter, other] } }); // prettier-ignore
    expect((await outcome).release.adapters.map(({ modelHash }) => modelHash)).toEqual(['h1', 'h2']);
  });

  test('[RL2] that is interrupted is active on none', async () => {
    const abort = new AbortController();
    const during = publish({ [A!]: [null] }, { more: { signal: abort.signal } });
    await settle();
    abort.abort();
    await expect(during.outcome).rejects.toThrow('active on no node: the publication was interrupted');
    const before = publish({ [A!]: [null] }, { more: { signal: AbortSignal.abort(new Error('stopped')) } });
    await expect(before.outcome).rejects.toThrow('active on no node: stopped');
  });

  test.each<[string, (count: number) => number | null | Error | undefined, object]>([
    ['was slower than another one', () => null, { code: 'conflict', isRetryable: true, message: 'another publication was faster; check ruvllm fleet status, then publish again' }],
    ['took too long', (count) => (count === 2 ? null : undefined), { code: 'conflict', isRetryable: true, message: 'active on no node: the publication was aborted, because it took too long' }],
    ['lost the store at its commit', (count) => (count === 2 ? new Error('gone') : undefined), { code: 'remote_failed', message: expect.stringContaining('lost during the commit') as string }],
  ])('[RL3] that %s says so', async (_, fail, error) => {
    const { outcome, isStopped } = publish({ [A!]: good }, { onWrite: (_record, count) => fail(count) });
    await expect(outcome).rejects.toMatchObject(error);
    expect(isStopped()).toBe(true);
  }); // prettier-ignore

  test('[RL3] waits for the end of another one, until it is abandoned', async () => {
    const proposal = { id: 'p', members: [A!], limitMs: 1500, number: 6, adapters: [adapter, { ...adapter, name: 'b' }] }; // prettier-ignore
    const pending = publish({ [A!]: good }, { record: recordOf(5, { proposal }), ageMs: 61_500 });
    await expect(pending.outcome).rejects.toMatchObject({ code: 'conflict', isRetryable: true, data: { proposal: 'p' }, message: 'another publication is in progress (m:style, m:b); it ends within 2 s' }); // prettier-ignore
    const empty = publish({ [A!]: good }, { record: recordOf(5, { proposal: { ...proposal, adapters: [] } }) });
    await expect(empty.outcome).rejects.toThrow('(no adapters)');
    const abandoned = publish({ [A!]: good }, { record: recordOf(5, { proposal }), ageMs: 61_501 });
    expect((await abandoned.outcome).nodes).toEqual([{ url: A, isActive: true }]);
  });

  test('[RL3] needs nodes, at most 1000, and has at most 64 adapters', async () => {
    const many = (count: number): PublishedAdapter[] => Array.from({ length: count }, (_, i) => ({ ...adapter, name: `a${i}` })); // prettier-ignore
    const nodes = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`http://${i}`, good]));
    await expect(publish({}).outcome).rejects.toMatchObject({ code: 'not_found' });
    expect((await publish(nodes(1), { more: { change: () => many(64) } }).outcome).release.adapters).toHaveLength(64);
    const over = { code: 'limit_exceeded', data: { count: 65, limit: 64 } };
    await expect(publish(nodes(1), { more: { change: () => many(65) } }).outcome).rejects.toMatchObject(over);
    const more = { code: 'limit_exceeded', message: '1001 nodes; the limit is 1000' };
    await expect(publish(nodes(1001)).outcome).rejects.toMatchObject(more);
    expect((await publish(nodes(1000)).outcome).nodes).toHaveLength(1000);
  });
});

test('[RL1] a record that the fleet has not signed is an error, none is an empty one', async () => {
  const read = (stored: StoredRecord | null) => readReleases({ read: async () => stored } as ReleaseStore, keys);
  expect(await read(null)).toEqual({ record: EMPTY_RECORD, stored: null });
  const stored = { text: writeRecord(keys, recordOf(5)), revision: 1, ageMs: 0 };
  expect(await read(stored)).toEqual({ record: recordOf(5), stored });
  await expect(read({ ...stored, text: '{}' })).rejects.toMatchObject({ code: 'untrusted' });
});

test('[RL1] a report is read as it was written, and refused in another shape', () => {
  const clock = createManualClock();
  const refusals: string[] = [];
  const read = createReportReader(keys, clock, (reason) => void refusals.push(reason));
  const write = createReportWriter(keys, clock, A!);
  const report: NodeReport = { proposal: 'p', state: 'active', reason: '', modelHashes: { m: 'h' } };
  expect(read(write(report))).toEqual({ url: A, report });
  expect(read('{}')).toBeNull();
  const broken = [{ proposal: 1 }, { reason: null }, { state: 'ready' }, { modelHashes: 'x' }, { modelHashes: null }, { modelHashes: { m: 1 } }]; // prettier-ignore
  for (const change of broken) expect(read(write({ ...report, ...change } as NodeReport))).toBeNull();
  expect(read(write(null as never))).toBeNull();
  expect(refusals).toEqual(Array.from({ length: 8 }, () => 'shape'));
});

describe('a record', () => {
  const isRead = (change: object): boolean => readRecord(keys, writeRecord(keys, { ...recordOf(5), ...change } as ReleaseRecord)) !== null; // prettier-ignore
  const proposal = { id: 'p', members: [A], limitMs: 1000, number: 6, adapters: [] };
  const list = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

  test('[RL1] has values up to its limits', () => {
    const accepted = [
      { committed: { number: 0, adapters: list(64, adapter) } },
      { committed: { number: 1, adapters: [{ ...adapter, model: 'm'.repeat(512), sizeBytes: 0 }] } },
      { previous: { number: 4, adapters: [] } },
      { proposal: { ...proposal, limitMs: 3_600_000, members: list(1000, 'x'.repeat(512)) } },
      { proposal: { ...proposal, limitMs: 0 } },
    ];
    expect(accepted.map(isRead)).toEqual(accepted.map(() => true));
    const refused = [
      { committed: { number: 1.5, adapters: [] } },
      { committed: { number: 1, adapters: [{ ...adapter, model: 'm'.repeat(513) }] } },
      { committed: { number: 1, adapters: [{ ...adapter, key: 1 }] } },
      { committed: { number: 1, adapters: [{ ...adapter, sizeBytes: -1 }] } },
      { committed: { number: 1, adapters: [{ ...adapter, name: 'n'.repeat(65) }] } },
      { previous: 4 },
      { proposal: { ...proposal, number: -1 } },
      { proposal: { ...proposal, id: 1 } },
      { proposal: { ...proposal, limitMs: 3_600_001 } },
      { proposal: { ...proposal, limitMs: -1 } },
      { proposal: { ...proposal, members: list(1001, A) } },
      { proposal: { ...proposal, members: [1] } },
      { proposal: { ...proposal, members: { length: 1 } } },
    ];
    expect(refused.map(isRead)).toEqual(refused.map(() => false));
  });

  test('[RL1] has at most 1 MiB', () => {
    const sized = (more: number) => ({ ...recordOf(5), proposal: { ...proposal, id: 'x'.repeat(more) } }) as ReleaseRecord; // prettier-ignore
    const room = 2 ** 20 - writeRecord(keys, sized(0)).length;
    expect(writeRecord(keys, sized(room))).toHaveLength(2 ** 20);
    expect(() => writeRecord(keys, sized(room + 1))).toThrow('has 1048577 bytes; the limit is 1048576');
    const text = writeRecord(keys, recordOf(5));
    expect(readRecord(keys, text.padEnd(2 ** 20))).toEqual(recordOf(5));
    expect(readRecord(keys, text.padEnd(2 ** 20 + 1))).toBeNull();
    const { body, signature } = JSON.parse(text) as { body: string; signature: string };
    expect([{ body }, { signature }, { body: [body], signature }, { body, signature: [signature] }].map((one) => readRecord(keys, JSON.stringify(one)))).toEqual(list(4, null)); // prettier-ignore
  });

  test('[RL9] is newer by its number, then by its adapters', () => {
    const of = (number: number, ...names: string[]) => ({ number, adapters: names.map((name) => ({ ...adapter, name })) }); // prettier-ignore
    const signs = [[of(1), of(2, 'a')], [of(3), of(2)], [of(2, 'a'), of(2, 'b')], [of(2, 'b'), of(2, 'a')], [of(2, 'a'), of(2, 'a')]]; // prettier-ignore
    expect(signs.map(([a, b]) => Math.sign(compareReleases(a!, b!)))).toEqual([-1, 1, -1, 1, 0]);
  });

  test('[RL1] has the same adapter under its model, name and content', () => {
    expect(isSameAdapter(adapter, { ...adapter, signature: 'other', modelHash: 'other' })).toBe(true);
    const others = [{ model: 'n' }, { name: 'n' }, { sha256: 'cd'.repeat(32) }];
    expect(others.map((change) => isSameAdapter(adapter, { ...adapter, ...change }))).toEqual([false, false, false]);
  });

  test('[RL6] is followed to newer ones only', () => {
    const commits: number[] = [];
    const refusals: string[] = [];
    let show = (_: string): void => {};
    const view = followCommits({
      store: { watch: (onRecord) => (show = (text) => onRecord({ text, revision: 1, ageMs: 0 })) },
      keys,
      onCommit: (number) => void commits.push(number),
      onRefused: (reason) => void refusals.push(reason),
    });
    const of = (number: number) => writeRecord(keys, recordOf(number, { committed: { number, adapters: [adapter] } }));
    for (const text of [of(0), of(5), of(5), of(4), '{}', of(6)]) show(text);
    expect([commits, refusals, view.number]).toEqual([[0, 5, 6], ['signature'], 6]);
    expect(['m:style', 'alias:style', 'm:other', 'style'].map(view.isPublished)).toEqual([true, true, false, false]);
  });
});
