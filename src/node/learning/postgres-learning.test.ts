// Everything that is learned, kept in PostgreSQL instead of a folder.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isHeldOut } from '../../learning/sona/examples.ts';
import { createSonaHarness } from '../../learning/sona/harness.contract.ts';
import type { TestServer } from '../../platform/node/memory/postgres-server.contract.ts';
import { newSchema, openAt, startPglite } from '../../platform/node/memory/postgres-setup.contract.ts';

let server: TestServer;
beforeAll(async () => void (server = await startPglite()));
afterAll(() => server.stop());

const OPTIONS = { minExamples: 4, instantLearningRate: 0.05 };

test('[LP1] steps, versions and what is forgotten are there after a restart, to the bit', async () => {
  const schema = newSchema();
  const open = async () => createSonaHarness(OPTIONS, await openAt(server.connectionString, schema, { vectors: 'sealed' })); // prettier-ignore
  const first = await open();
  const sona = first.open();
  const ids: string[] = [];
  for (let i = 0; i < 24; i++) ids.push(await first.add(1, i < 4 ? { userId: 'eve' } : {}));
  const version = (await sona.backgroundConsolidate('acme', 'small')).version!;
  expect(version).toMatchObject({ version: 1, isAccepted: true });
  expect((await sona.instantAdapt('acme', ids.find(isHeldOut)!)).isApplied).toBe(true);
  const served = first.served.get('acme')!;
  await first.store.close();

  const second = await open();
  const again = second.open();
  await again.restore('acme', 'small');
  const { trained, instant } = second.served.get('acme')!;
  expect([trained!.contentHash, instant!.contentHash]).toEqual([served.trained!.contentHash, served.instant!.contentHash]); // prettier-ignore
  const report = await again.forget('acme', [{ field: 'userId', is: '=', value: 'eve' }]);
  expect(report).toMatchObject({ numTrajectories: 4, relearned: [{ model: 'small' }] });
  expect(second.served.get('acme')!.trained?.contentHash).not.toBe(trained!.contentHash);
  await expect(again.rollback('acme', 'small', 1)).rejects.toMatchObject({ code: 'not_found' });
  await again.rollback('acme', 'small', 0);
  expect(second.served.get('acme')).toEqual({ trained: null, instant: null });
  await second.store.close();
});

test('[LP2] a tenant that is erased leaves nothing to restore', async () => {
  const harness = createSonaHarness(OPTIONS, await openAt(server.connectionString, newSchema(), { vectors: 'sealed' }));
  const sona = harness.open();
  await sona.instantAdapt('acme', await harness.add(1));
  expect(harness.served.get('acme')!.instant).not.toBeNull();
  await sona.leaveTenant('acme', ['small']);
  await harness.store.eraseTenant('acme');
  await harness.open().restore('acme', 'small');
  expect(harness.served.get('acme')).toEqual({ trained: null, instant: null });
});
