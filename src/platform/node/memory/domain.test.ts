import { describe, expect, test } from 'vitest';
import { campaign } from '../../../../test/support/campaign.ts';
import { createMemoryGraph } from '../../../memory/graph/graph.ts';
import { createPolicyMemory } from '../../../memory/policies/policies.ts';
import { DEFAULT_POLICIES } from '../../../memory/policies/defaults.ts';
import { createSessionIndex } from '../../../memory/sessions/sessions.ts';
import { createTestServices } from '../../../memory/test-store.contract.ts';
import {
  createManualSchedule,
  createTestArchive,
  numbered,
  TENANT,
  writeAll,
} from '../../../memory/audit/harness.contract.ts';
import { openAuditLog } from '../../../memory/audit/index.ts';
import { openBusyLog } from '../../../memory/audit/verify-under-writes.contract.ts';
import { DRIVERS, newFolder, openAt } from './memory-setup.contract.ts';

const DAY_MS = 86_400_000;
const NUM_VERIFIES = campaign({ short: 6, long: 500 });

describe.each(DRIVERS)('the parts of the memory on SQLite (%s)', (driver) => {
  const setUp = () => {
    const services = createTestServices();
    const folder = newFolder();
    const open = () => openAt(folder, { driver, now: services.now }).store;
    return { services, open, schedule: createManualSchedule().schedule };
  };

  test('[WL5] [WL10] [WL11] the chain holds over reopening, a crash, and the seam to the archive', async () => {
    const { services, open, schedule } = setUp();
    const archive = createTestArchive();
    const first = open();
    const log = await openAuditLog({ store: first, services, schedule, archive });
    await writeAll(log, numbered(150));
    await first.close(); // the log is not closed: it crashes
    services.timeMs += 8 * DAY_MS;
    const second = open();
    const next = await openAuditLog({ store: second, services, schedule, archive });
    expect(next.stats().gaps.length).toBe(1);
    await writeAll(next, numbered(5, 151));
    expect(await next.verify(TENANT)).toMatchObject({
      isIntact: true,
      numChecked: 155,
      gaps: [{ afterSequence: 150 }],
    });
    expect(await next.retain(TENANT)).toMatchObject({ numMoved: 150, numSegments: 1 });
    expect(await next.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 155, numArchived: 150 });
    const page = await next.search(TENANT, { text: 'QUERY 15', model: 'stories15M', order: 'oldest' });
    expect(page.entries.map(({ entry }) => entry.query)).toEqual(numbered(5, 151).map(({ query }) => query));
    expect(await next.aggregate(TENANT)).toMatchObject({ count: 5, totalMs: { p99: 121 } });
    await next.close();
  });

  test('[WL21] verify finds nothing while entries are written, archived, trimmed and erased', async () => {
    const { services, open } = setUp();
    const { verify } = await openBusyLog({ store: open(), services, archive: createTestArchive(), seed: 2 });
    for (let i = 0; i < NUM_VERIFIES; i++) expect((await verify()).brokenAt).toBeNull();
  });

  test('[SI1] [SI3] [PM2] [GR1] keeps sessions, policies and graph over a restart', async () => {
    const { services, open } = setUp();
    const first = open();
    const sessions = createSessionIndex(first, services);
    const a = await sessions.addTurn(TENANT, 'chat', { query: 'q1', answer: 'a1' }, { userId: 'ada' });
    const b = await sessions.addTurn(TENANT, 'chat', { query: 'q2', answer: 'a2' });
    const policy = {
      policyType: 'ewc',
      parameters: DEFAULT_POLICIES.ewc.parameters,
      confidence: 0.5,
      source: 'deep-loop',
    } as const;
    await createPolicyMemory(first, services).put(TENANT, policy);
    await createPolicyMemory(first, services).put(TENANT, { ...policy, fisherDiagonal: Float32Array.of(0.1, 1e-30) });
    await first.close();
    const second = open();
    const reopened = createSessionIndex(second, services);
    expect(await reopened.get(TENANT, 'chat')).toEqual(await sessions.get(TENANT, 'chat'));
    expect((await reopened.find(TENANT, { userId: 'ada' })).sessions.length).toBe(1);
    expect(await reopened.turns(TENANT, 'chat')).toEqual([b, a]);
    const history = await createPolicyMemory(second, services).history(TENANT, 'ewc');
    expect(history.map(({ policyVersion, fisherDiagonal }) => [policyVersion, fisherDiagonal])).toEqual([
      [2, Float32Array.of(0.1, 1e-30)],
      [1, null],
    ]);
    const neighbours = await createMemoryGraph(second, services).neighbours(TENANT, b.id, { relations: ['follows'] });
    expect(neighbours.map(({ id, weight }) => [id, weight])).toEqual([[a.id, 1]]);
  });
});
