import { describe, expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createTestServices, createTestStore, recordsOf } from '../test-store.contract.ts';
import { AUDIT_KIND, type JsonValue, type MemoryRecord, type MemoryStore } from '../types.ts';
import { createTestArchive, TENANT } from './harness.contract.ts';
import type { AuditReport } from './verify.ts';
import { openBusyLog } from './verify-under-writes.contract.ts';

const DAY_MS = 86_400_000;
const NUM_VERIFIES = campaign({ short: 40, long: 1500 });

function openBusy(seed: number, hasOnlyWrites = false) {
  const services = createTestServices();
  const store = createTestStore(services);
  const archive = createTestArchive();
  return openBusyLog({ store, services, archive, seed, hasOnlyWrites }).then((busy) => ({
    ...busy,
    services,
    store,
    archive,
  }));
}

test('[WL21] verify finds nothing while entries are written, archived, trimmed and erased', async () => {
  const { verify, between } = await openBusy(campaign({ short: 1, long: Date.now() % 100_000 }));
  for (let i = 0; i < NUM_VERIFIES; i++)
    expect([i, await verify()]).toEqual([i, expect.objectContaining({ brokenAt: null })]);
  expect(Math.min(between.writes, between.retentions, between.erasures)).toBeGreaterThan(NUM_VERIFIES / 20);
});

type Damage = (store: MemoryStore, last: MemoryRecord, files: Map<string, Uint8Array>) => Promise<unknown>;
const changeBody = (record: MemoryRecord, change: object): MemoryRecord => ({
  ...record,
  body: { ...(record.body as object), ...change } as JsonValue,
});
const manifestOf = async (store: MemoryStore): Promise<MemoryRecord> =>
  (await recordsOf(store)).find(({ fields }) => fields['name'] === 'witness-segment')!;

const DAMAGES: Readonly<Record<string, Damage>> = {
  'a changed text': (store, last) => {
    const { entry } = last.body as { entry: object };
    return store.put([changeBody(last, { entry: { ...entry, response: 'changed' } })]);
  },
  'a changed field': (store, last) => store.put([{ ...last, fields: { ...last.fields, totalMs: 7 } }]),
  'an erasure that nothing records': (store, last) => store.put([changeBody(last, { entry: null })]),
  'a deleted entry': (store, last) => store.delete(TENANT, [last.id]),
  'an entry far beyond the head': (store, last) =>
    store.put([{ ...last, id: '0199a0b4-7c00-7000-8000-ffffffffffff', fields: { ...last.fields, sequence: 999_999 } }]),
  'a changed segment': async (_, __, files) => files.forEach((bytes) => (bytes[20]! ^= 1)),
  'a lost segment': async (_, __, files) => files.clear(),
  'a manifest that cannot be read': async (store) => store.put([{ ...(await manifestOf(store)), body: 'damaged' }]),
  'a lost manifest': async (store) => store.delete(TENANT, [(await manifestOf(store)).id]),
};

describe('[WL21] verify still finds, while entries are written,', () => {
  test.each(Object.entries(DAMAGES))('%s', async (_, damage) => {
    const { log, verify, store, archive, services } = await openBusy(5, true);
    services.timeMs += 8 * DAY_MS;
    await log.retain(TENANT);
    for (let i = 0; i < 3; i++) expect((await verify()).brokenAt).toBeNull();
    const entries = (await recordsOf(store)).filter(({ kind }) => kind === AUDIT_KIND);
    await damage(
      store,
      entries.reduce((a, b) => (Number(a.fields['sequence']) > Number(b.fields['sequence']) ? a : b)),
      archive.files,
    );
    for (let i = 0; i < 3; i++) expect((await verify()).isIntact).toBe(false);
  });
});

test('[WL21] a store that cannot be asked is an error, one that is damaged is an alarm', async () => {
  const { log, store } = await openBusy(4);
  const fail = async (data: Record<string, boolean>): Promise<AuditReport> => {
    let numFinds = 0;
    // The first one reads manifests, the second entries, the third runs.
    store.onCall = (operation) => {
      if (operation === 'find' && ++numFinds === 2)
        throw new RuvLLMError('io', 'no answer', { isRetryable: true, data });
    };
    return log.verify(TENANT);
  };
  await expect(fail({})).rejects.toThrow('no answer');
  expect((await fail({ isDamaged: true })).brokenAt?.reason).toBe('no answer');
});

test('[WL21] the end of a tenant while it is verified is no damage', async () => {
  const { log, verify, store } = await openBusy(3);
  const calls: string[] = [];
  const inner = store.find;
  Object.assign(store, {
    async find(...given: Parameters<MemoryStore['find']>) {
      if (calls.push('find') === 2) await store.eraseTenant(TENANT);
      return inner(...given);
    },
  });
  expect((await log.verify(TENANT)).brokenAt).toBeNull();
  expect(calls.length).toBeGreaterThan(2);
  await verify();
});
