import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { recordsOf } from '../test-store.contract.ts';
import { AUDIT_KIND, type JsonValue, type MemoryRecord } from '../types.ts';
import { createHarness, createTestArchive, numbered, TENANT, writeAll, type Harness } from './harness.contract.ts';

const DAY_MS = 86_400_000;

interface Change {
  readonly fields?: object;
  readonly entry?: object;
  readonly link?: object;
  readonly record?: Partial<MemoryRecord>;
}

/** Plays someone with the keys who changes what was written. */
async function tamper({ store }: Harness, sequence: number, change: Change): Promise<void> {
  const row = (await recordsOf(store)).find(
    ({ kind, fields }) => kind === AUDIT_KIND && fields['sequence'] === sequence,
  )!;
  const body = row.body as { entry: object; link: object };
  const changed = { entry: { ...body.entry, ...change.entry }, link: { ...body.link, ...change.link } } as JsonValue;
  await store.put([{ ...row, ...change.record, fields: { ...row.fields, ...change.fields }, body: changed }]);
}

describe('[WL10] verify says where a chain breaks', () => {
  const cases: readonly [string, Change, number, RegExp][] = [
    ['a changed text', { entry: { response: 'changed' } }, 3, /hash differs/],
    ['a changed hash', { link: { hash: 'f'.repeat(64) } }, 3, /hash differs/],
    ['a changed time', { record: { createdMs: Date.UTC(2026, 0, 1) + 1 } }, 3, /hash differs/],
    ['a changed field', { fields: { quality: 0.9 } }, 3, /filed under another quality/],
    ['a changed vector', { record: { vector: Float32Array.of(1, 1) } }, 3, /another vector/],
    ['no link', { link: { sequence: 'x' } }, 3, /no link/],
    ['another place', { fields: { sequence: 7 } }, 3, /entry 3 is missing|4 comes next/],
  ];
  test.each(cases)('%s', async (_, change, sequence, reason) => {
    const harness = createHarness();
    const log = await harness.open();
    await writeAll(log, numbered(5));
    expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 5, brokenAt: null });
    await tamper(harness, 3, change);
    const report = await log.verify(TENANT);
    expect(report.brokenAt).toEqual({ sequence, reason: expect.stringMatching(reason) });
    expect(report.numChecked).toBe(2);
  });
  test('a deleted entry, at the start, inside and at the end', async () => {
    for (const sequence of [1, 3, 5]) {
      const { open, store } = createHarness();
      const log = await open();
      await writeAll(log, numbered(5));
      const row = (await recordsOf(store)).find(
        ({ kind, fields }) => kind === AUDIT_KIND && fields['sequence'] === sequence,
      )!;
      await store.delete(TENANT, [row.id]);
      expect((await log.verify(TENANT)).brokenAt).toEqual({ sequence, reason: expect.stringContaining('missing') });
    }
  });
  test('a head that was set back', async () => {
    const { open, store } = createHarness();
    const log = await open();
    await writeAll(log, numbered(2));
    const head = (await recordsOf(store)).find(({ fields }) => fields['name'] === 'witness-head')!;
    await writeAll(log, numbered(2, 3));
    await store.put([head]);
    expect((await log.verify(TENANT)).brokenAt).toEqual({
      sequence: 3,
      reason: expect.stringContaining('beyond the head at 2'),
    });
  });
});

describe('[WL11] retention', () => {
  test('of two at once: each entry is in one segment, which is as it was written, and no file is left over', async () => {
    const harness = createHarness();
    const base = createTestArchive();
    let numZipped = 0;
    // Never the same bytes twice, as when they are sealed.
    const archive = { ...base, gzip: async (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes, { level: 1 + (numZipped++ % 9) })) }; // prettier-ignore
    const [one, two] = [await harness.open({ archive }), await harness.open({ archive, log: { leaseMs: 60_000 } })];
    await writeAll(one, numbered(40));
    harness.services.timeMs += 8 * DAY_MS;
    const reports = await Promise.all([one.retain(TENANT), two.retain(TENANT)]);
    expect(numZipped).toBeGreaterThan(1); // they did meet
    expect(reports.reduce((sum, { numMoved }) => sum + numMoved, 0)).toBe(40);
    expect(await one.verify(TENANT)).toMatchObject({ brokenAt: null, numChecked: 40, numArchived: 40 });
    expect(base.files.size).toBe(1);
  });

  test('moves entries older than 7 days into sealed segments, and the chain stays verifiable', async () => {
    const { open, services, store } = createHarness();
    const archive = createTestArchive();
    const log = await open({ archive, log: { numSimilar: 0 } });
    await writeAll(log, numbered(700));
    services.timeMs += 3 * DAY_MS;
    await writeAll(log, numbered(5, 701));
    services.timeMs += 4 * DAY_MS + 1;
    expect(await log.retain(TENANT)).toEqual({ numMoved: 700, numSegments: 2, numSegmentsDeleted: 0 });
    expect((await recordsOf(store)).filter(({ kind }) => kind === AUDIT_KIND).length).toBe(5);
    await writeAll(log, numbered(3, 706));
    expect(await log.verify(TENANT)).toMatchObject({
      isIntact: true,
      numChecked: 708,
      numArchived: 700,
      trimmed: { sequence: 0 },
    });
    expect(await log.retain(TENANT)).toEqual({ numMoved: 0, numSegments: 0, numSegmentsDeleted: 0 });
    for (const bytes of archive.files.values()) expect(new TextDecoder('latin1').decode(bytes)).not.toContain('query');
    const queries = [];
    for await (const { entry, isArchived } of log.export(TENANT)) queries.push([entry.query, isArchived]);
    expect(queries).toEqual(numbered(708).map(({ query }, index) => [query, index < 700]));
  });
  test('by bytes takes the oldest', async () => {
    const { open } = createHarness();
    const log = await open({ archive: createTestArchive(), retention: { maxBytes: 5500 } });
    await writeAll(log, numbered(10).map((entry) => ({ ...entry, response: 'x'.repeat(1000) }))); // prettier-ignore
    const { numMoved } = await log.retain(TENANT);
    expect(numMoved).toBe(7);
    expect(await log.retain(TENANT)).toMatchObject({ numMoved: 0 });
    expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 10 });
  });
  test('without an archive deletes, and says up to where', async () => {
    const { open, services } = createHarness();
    const log = await open();
    await writeAll(log, numbered(4));
    services.timeMs += 8 * DAY_MS;
    await writeAll(log, numbered(2, 5));
    await log.retain(TENANT);
    expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 2, trimmed: { sequence: 4 } });
  });
  test('of the archive drops its oldest segments, and the chain starts there', async () => {
    const { open, services } = createHarness();
    const archive = createTestArchive();
    const log = await open({ archive, retention: { archiveMaxAgeMs: 30 * DAY_MS } });
    await writeAll(log, numbered(3));
    services.timeMs += 20 * DAY_MS;
    await writeAll(log, numbered(3, 4));
    await log.retain(TENANT);
    services.timeMs += 20 * DAY_MS;
    expect(await log.retain(TENANT)).toEqual({ numMoved: 3, numSegments: 1, numSegmentsDeleted: 1 });
    expect(archive.files.size).toBe(1);
    expect(await log.verify(TENANT)).toMatchObject({
      isIntact: true,
      numChecked: 3,
      numArchived: 3,
      trimmed: { sequence: 3 },
    });
  });
  test('survives a crash at every call', async () => {
    for (let failAt = 1; ; failAt++) {
      const { open, services, store } = createHarness();
      const archive = createTestArchive();
      const log = await open({ archive, retention: { archiveMaxAgeMs: 30 * DAY_MS } });
      await writeAll(log, numbered(3));
      services.timeMs += 40 * DAY_MS;
      await writeAll(log, numbered(3, 4));
      let numCalls = 0;
      store.onCall = () => {
        if (++numCalls >= failAt) throw new RuvLLMError('io', 'killed');
      };
      const hasEnded = await log.retain(TENANT).then(
        () => true,
        () => false,
      );
      store.onCall = () => {};
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true });
      await log.retain(TENANT);
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 3, trimmed: { sequence: 3 } });
      expect((await recordsOf(store)).filter(({ kind }) => kind === AUDIT_KIND).length).toBe(3);
      if (hasEnded) break;
    }
  });
  test('a segment that is changed, missing or of another tenant is seen', async () => {
    const damages: ((files: Map<string, Uint8Array>) => void)[] = [
      (files) => files.forEach((bytes) => (bytes[20]! ^= 1)),
      (files) => files.clear(),
    ];
    for (const damage of damages) {
      const { open, services } = createHarness();
      const archive = createTestArchive();
      const log = await open({ archive });
      await writeAll(log, numbered(3));
      services.timeMs += 8 * DAY_MS;
      await log.retain(TENANT);
      damage(archive.files);
      expect((await log.verify(TENANT)).brokenAt).toEqual({
        sequence: 1,
        reason: expect.stringContaining('segment 000000000001-'),
      });
    }
  });
  test('interleaved with writes keeps one chain', async () => {
    const { open, services, store } = createHarness();
    const log = await open({ archive: createTestArchive() });
    await writeAll(log, numbered(20));
    services.timeMs += 8 * DAY_MS;
    store.onCall = () => new Promise((resolve) => setImmediate(resolve));
    const [retained, , report] = await Promise.all([
      log.retain(TENANT),
      writeAll(log, numbered(20, 21)),
      log.verify(TENANT),
    ]);
    expect(retained.numMoved).toBe(20);
    expect(report.isIntact).toBe(true);
    expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 40, numArchived: 20 });
  });
});
