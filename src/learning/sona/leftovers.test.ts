// Records that runs and forget operations leave in the store, and records they must not delete.
import { beforeEach, expect, test } from 'vitest';
import { createSonaHarness } from './harness.contract.ts';
import { adapterLine } from './learned-adapter.ts';

let harness: ReturnType<typeof createSonaHarness>;
const line = adapterLine('small');
const ofEve = [{ field: 'userId', is: '=', value: 'eve' }] as const;
beforeEach(() => {
  harness = createSonaHarness({ minExamples: 4 });
});

async function teach(count: number, changes: Parameters<typeof harness.add>[1] = {}): Promise<void> {
  for (let i = 0; i < count; i++) await harness.add(1, changes);
}
async function numCheckpoints(): Promise<number> {
  const fields = [{ field: 'name', is: '=', value: 'checkpoint' }] as const;
  return harness.store.count('acme', { kinds: ['state'], filter: { fields } });
}

test('a version leaves no checkpoint of the run that made it (LB4)', async () => {
  await teach(40);
  const stop = new AbortController();
  harness.onCheckpoint(() => stop.abort());
  const running = harness.open({ sliceMs: 1 }).backgroundConsolidate('acme', 'small', { signal: stop.signal });
  await expect(running).rejects.toMatchObject({ code: 'aborted' });
  expect(await numCheckpoints()).toBe(1);
  const { version } = await harness.open().backgroundConsolidate('acme', 'small');
  expect(version).toMatchObject({ version: 1 });
  expect(await numCheckpoints()).toBe(0);
});

test('without a finished task λ stays, and a version names all requests it learned from', async () => {
  await teach(40);
  const sona = harness.open();
  const first = (await sona.backgroundConsolidate('acme', 'small')).version!;
  expect(first).toMatchObject({ isAccepted: true, contents: { lambda: 2000, boundariesMs: [] } });
  await teach(10, { answer: 'a blue zog!' });
  const second = (await sona.backgroundConsolidate('acme', 'small')).version!;
  expect(second).toMatchObject({ isAccepted: true, contents: { lambda: 2000, boundariesMs: [] } });
  expect(second.learnedFrom).toEqual(expect.arrayContaining(first.learnedFrom));
  expect(second.learnedFrom.length).toBeGreaterThan(first.learnedFrom.length);
});

test('a version lists the requests of its predecessors, also deleted ones (LF1)', async () => {
  await teach(40, { userId: 'eve' });
  const sona = harness.open();
  const first = (await sona.backgroundConsolidate('acme', 'small')).version!;
  await harness.trajectories.remove('acme', ofEve);
  await teach(40, { answer: 'a red zog' });
  const second = (await sona.backgroundConsolidate('acme', 'small')).version!;
  expect(second).toMatchObject({ version: 2, isAccepted: true });
  expect(second.learnedFrom.slice(0, first.learnedFrom.length)).toEqual(first.learnedFrom);
});

test('weights shared with a forgotten version stay (LV1)', async () => {
  await teach(40);
  const sona = harness.open();
  await sona.backgroundConsolidate('acme', 'small');
  const first = harness.served.get('acme')!.trained!.contentHash;
  await teach(40, { userId: 'eve', answer: 'a blue zog!' });
  const { version } = await sona.backgroundConsolidate('acme', 'small');
  expect(version).toMatchObject({ version: 2, isAccepted: true });
  harness.setLoaded(false);
  await sona.forget('acme', ofEve);
  harness.setLoaded(true);
  await sona.rollback('acme', 'small', 1);
  expect(harness.served.get('acme')!.trained!.contentHash).toBe(first);
  expect(await sona.versions.active('acme', line)).toMatchObject({ version: 1 });
});

test('patterns of forgotten requests are deleted (LF1)', async () => {
  const near = { embedding: Float32Array.of(0.6, 0.8), space: 'test-2' };
  await teach(30, { ...near, userId: 'eve', query: 'my secret' });
  const sona = harness.open();
  await sona.bank.distil('acme');
  expect(await sona.bank.count('acme')).toBeGreaterThan(0);
  await sona.forget('acme', ofEve);
  expect(await sona.bank.count('acme')).toBe(0);
});
