import { beforeEach, describe, expect, test } from 'vitest';
import { adapterLine } from './learned-adapter.ts';
import { createSonaHarness } from './harness.contract.ts';
import { isHeldOut } from './examples.ts';
import type { Served } from './types.ts';

let harness: ReturnType<typeof createSonaHarness>;
const line = adapterLine('small');
beforeEach(() => {
  harness = createSonaHarness({ minExamples: 4 });
});

async function teach(count = 40, answer = 'a blue zog'): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await harness.add(1, { answer }));
  return ids;
}
const hashesOf = (served: Served | undefined): string | null => {
  const hashes = [served?.trained?.contentHash, served?.instant?.contentHash];
  return hashes.every((hash) => hash === undefined) ? null : JSON.stringify(hashes);
};
const hashServed = (): string | null => hashesOf(harness.served.get('acme'));
const NOTHING = { trained: null, instant: null };

describe('loop A (LA1)', () => {
  test('makes an accepted answer likelier and a rejected one less likely', async () => {
    const sona = harness.open({ instantLearningRate: 0.05 });
    const praised = await sona.instantAdapt('acme', await harness.add(1));
    expect(praised.isApplied).toBe(true);
    expect(praised.lossAfter!).toBeLessThan(praised.lossBefore!);
    const first = hashServed();
    expect(first).not.toBeNull();
    const rejected = await sona.instantAdapt('acme', await harness.add(0, { answer: 'xx yy' }));
    expect(rejected.lossAfter!).toBeLessThan(rejected.lossBefore!);
    expect(hashServed()).not.toBe(first);
    expect(harness.served.get('acme')!.instant!.factors.map(({ target }) => target)).toEqual(['output']);
    expect(harness.served.get('acme')!.trained).toBeNull();
  });

  test('learns the correction, not the corrected answer', async () => {
    const sona = harness.open({ instantLearningRate: 0.05 });
    const seen: string[] = [];
    const { encodeExample } = harness.model;
    Object.assign(harness.model, {
      encodeExample: (one: never, answer: string) => (seen.push(answer), encodeExample(one, answer)),
    });
    expect(await sona.instantAdapt('acme', await harness.add(null, { correction: 'a red zog' }))).toMatchObject({
      isApplied: true,
    });
    expect(seen).toEqual(['a red zog']);
  });

  test('reports how each step ended (LA8)', async () => {
    const sona = harness.open({ instantLearningRate: 0.05 });
    const id = await harness.add(null, { correction: 'a red zog' });
    const report = await sona.instantAdapt('acme', id);
    expect(harness.events).toEqual([{ tenant: 'acme', requestId: id, model: 'small', ...report }]);
    expect(report).toMatchObject({ outcome: 'learned', supersedes: [], version: 0 });
    const neutral = await harness.add(0.5);
    await sona.instantAdapt('acme', neutral);
    expect(harness.events.at(-1)).toMatchObject({ requestId: neutral, outcome: 'skipped' });
  });

  test('a newer correction of the same user undoes the older one (LA9)', async () => {
    const [sona, never] = [harness.open({ instantLearningRate: 0.05 }), createSonaHarness({ minExamples: 4 })];
    const other = await harness.add(null, { correction: 'in burrows' });
    const old = await harness.add(null, { query: 'My dog?', correction: 'Bello' });
    for (const id of [other, old]) await sona.instantAdapt('acme', id);
    harness.services.timeMs += 1000;
    const newest = await harness.add(null, { query: 'my dog', correction: 'Waldi' });
    const report = await sona.instantAdapt('acme', newest);
    expect(report).toMatchObject({ outcome: 'learned', supersedes: [old] });
    expect(report.reason).toContain('; replaces 1 earlier rating of this question');
    expect(harness.events.find(({ outcome }) => outcome === 'superseded')).toMatchObject({ requestId: old });
    expect(await sona.taught('acme', 'small')).toEqual([other, newest]);
    // As if the old one had never been.
    const spared = never.open({ instantLearningRate: 0.05 });
    await spared.instantAdapt('acme', await never.add(null, { correction: 'in burrows' }));
    await never.add(null);
    await spared.instantAdapt('acme', await never.add(null, { query: 'my dog', correction: 'Waldi' }));
    expect(hashServed()).toBe(hashesOf(never.served.get('acme')));
    expect(await sona.instantAdapt('acme', old)).toMatchObject({ outcome: 'superseded', isApplied: false });
  });

  test('changes nothing without a verdict', async () => {
    const sona = harness.open();
    expect(await sona.instantAdapt('acme', await harness.add(null))).toMatchObject({ isApplied: false });
    expect(await sona.instantAdapt('acme', await harness.add(0.5))).toMatchObject({ isApplied: false });
    expect(await sona.instantAdapt('acme', await harness.add(1, { prompt: null }))).toMatchObject({ isApplied: false });
    expect(harness.served.has('acme')).toBe(false);
    expect(sona.stats().numInstant).toBe(0);
  });

  test('undoes and reports a step that harms earlier answers (LA2)', async () => {
    const sona = harness.open({ instantLearningRate: 1 });
    // Of a model with large hidden states: what the cap leaves is still too much.
    const { examine } = harness.model;
    Object.assign(harness.model, {
      examine: async (tenant: string, example: never) =>
        (await examine(tenant, example)).map((one) => ({ ...one, hidden: one.hidden.map((value) => 10 * value) })),
    });
    const reports = [];
    for (let i = 0; i < 30; i++) reports.push(await sona.instantAdapt('acme', await harness.add(i % 2)));
    const refused = reports.filter(({ isApplied }) => !isApplied);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]!.reason).toContain('earlier answers would lose');
    expect(sona.stats().numInstantRefused).toBe(refused.length);
  });

  test('serves the same weights after a restart (LA3)', async () => {
    const sona = harness.open({ instantLearningRate: 0.05 });
    for (let i = 0; i < 3; i++) await sona.instantAdapt('acme', await harness.add(1));
    const before = hashServed();
    await sona.close();
    harness.served.clear();
    const again = harness.open({ instantLearningRate: 0.05 });
    await again.restore('acme', 'small');
    expect(hashServed()).toBe(before);
    await again.instantAdapt('acme', await harness.add(1));
    expect(hashServed()).not.toBe(before);
  });
});

describe('loop B (LB1)', () => {
  test('lowers the loss of unseen answers', async () => {
    await teach();
    const before = await harness.lossOf('99?', 'a blue zog');
    const sona = harness.open();
    const report = await sona.backgroundConsolidate('acme', 'small');
    expect(report.version).toMatchObject({ version: 1, isAccepted: true, loop: 'background' });
    expect(report.version!.metrics['held_out_high']).toBeLessThan(0);
    expect(report.numTrained + report.numHeldOut).toBe(40);
    expect(await harness.lossOf('99?', 'a blue zog')).toBeLessThan(before * 0.8);
  });

  test('changes nothing without ratings', async () => {
    for (let i = 0; i < 40; i++) await harness.add(null);
    const sona = harness.open();
    expect(await sona.backgroundConsolidate('acme', 'small')).toMatchObject({ version: null, numTrained: 0 });
    expect(harness.served.has('acme')).toBe(false);
  });

  test('makes no version without new ratings', async () => {
    await teach();
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    expect(await sona.backgroundConsolidate('acme', 'small')).toMatchObject({ version: null });
    expect(await sona.versions.history('acme', line)).toHaveLength(1);
  });

  test('goes only as far as other answers allow (LB9)', async () => {
    await teach();
    const sona = harness.open({ maxExamples: 100 });
    expect((await sona.backgroundConsolidate('acme', 'small')).version!.metrics['share']).toBe(1);
    for (let i = 0; i < 16; i++) await harness.add(null);
    for (let i = 0; i < 30; i++) await harness.add(0);
    const { metrics } = (await sona.backgroundConsolidate('acme', 'small')).version!;
    expect(metrics['share']).toBeLessThan(1);
    expect(metrics['elsewhere_mean']).toBeLessThanOrEqual(0.05);
  });

  test('refuses a version that harms other answers and keeps the old one (LB2)', async () => {
    await teach();
    const sona = harness.open({ maxExamples: 100 });
    await sona.backgroundConsolidate('acme', 'small');
    const served = hashServed();
    // Those that say how far to go do not suffer from it; those that judge do.
    for (let i = 0; i < 16; i++) await harness.add(null, i % 2 === 0 ? { answer: 'mnopmnopm' } : {});
    for (let i = 0; i < 120; i++) await harness.add(0);
    const { version } = await sona.backgroundConsolidate('acme', 'small');
    expect(version).toMatchObject({ isAccepted: false, blobs: {} });
    expect(version!.reason).toContain('elsewhere');
    expect(hashServed()).toBe(served);
    expect(await sona.versions.active('acme', line)).toMatchObject({ version: 1 });
  });

  test('replaces steps of loop A by the version (LB3)', async () => {
    const ids = (await teach()).filter((id) => !isHeldOut(id));
    const sona = harness.open({ instantLearningRate: 0.05 });
    await sona.instantAdapt('acme', ids[0]!);
    await sona.backgroundConsolidate('acme', 'small');
    expect(harness.served.get('acme')!.instant).toBeNull();
    const { trained } = harness.served.get('acme')!;
    await sona.instantAdapt('acme', ids[1]!);
    expect(harness.served.get('acme')!.instant).not.toBeNull();
    expect(harness.served.get('acme')!.trained!.contentHash).toBe(trained!.contentHash);
  });

  test('never trains on held-out requests', async () => {
    const ids = await teach();
    const { version } = await harness.open().backgroundConsolidate('acme', 'small');
    expect(version!.learnedFrom.filter(isHeldOut)).toEqual([]);
    expect(version!.learnedFrom.length).toBe(ids.filter((id) => !isHeldOut(id)).length);
  });

  test('continues a stopped run to the same weights (LB4)', async () => {
    await teach(40);
    const whole = createSonaHarness({ minExamples: 4 });
    for (let i = 0; i < 40; i++) await whole.add(1);
    await whole.open().backgroundConsolidate('acme', 'small');
    const stop = new AbortController();
    const sona = harness.open({ sliceMs: 100 }, { open: 0, loss: 1, gradient: 20 });
    let numPieces = 0;
    harness.onCheckpoint(() => ++numPieces === 3 && stop.abort());
    const running = sona.backgroundConsolidate('acme', 'small', { signal: stop.signal });
    await expect(running).rejects.toMatchObject({ code: 'aborted', message: expect.stringContaining('after 3 steps') });
    expect(harness.served.has('acme')).toBe(false);
    const again = harness.open({ sliceMs: 50 });
    await again.backgroundConsolidate('acme', 'small');
    expect(hashServed()).toBe(hashesOf(whole.served.get('acme')));
  });

  test('keeps the old version after a crash before writing (LB5)', async () => {
    await teach(40);
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    const served = hashServed();
    await teach(40, 'a red zog');
    harness.store.onCall = (operation, argument) => {
      const records = argument as { fields?: { name?: string } }[];
      if (operation === 'put' && records.some?.(({ fields }) => fields?.name?.startsWith('learned-version')))
        throw new Error('killed');
    };
    await expect(sona.backgroundConsolidate('acme', 'small')).rejects.toThrow('killed');
    harness.store.onCall = () => {};
    harness.served.clear();
    await harness.open().restore('acme', 'small');
    expect(hashServed()).toBe(served);
  });
});

describe('versions', () => {
  test('can be rolled back and forward (LB6)', async () => {
    await teach(40);
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    const first = hashServed();
    await teach(40, 'a blue zog!');
    expect((await sona.backgroundConsolidate('acme', 'small')).version).toMatchObject({ version: 2, isAccepted: true });
    const second = hashServed();
    await sona.rollback('acme', 'small', 1);
    expect(hashServed()).toBe(first);
    await sona.rollback('acme', 'small', 2);
    expect(hashServed()).toBe(second);
    await sona.rollback('acme', 'small', 0);
    expect(harness.served.get('acme')).toEqual(NOTHING);
  });

  test('serve their tenant only (LB7)', async () => {
    await teach(40);
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    await sona.restore('other', 'small');
    expect(harness.served.get('other')).toEqual(NOTHING);
    expect(await sona.versions.lines('other')).toEqual([]);
  });
});

describe('forgetting (LF1)', () => {
  const ofEve = [{ field: 'userId', is: '=', value: 'eve' }] as const;

  test('retrains from the remaining requests to the same weights as without the forgotten ones', async () => {
    await teach(40);
    for (let i = 0; i < 40; i++) await harness.add(1, { userId: 'eve', answer: 'my secret' });
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    const report = await sona.forget('acme', ofEve);
    expect(report).toMatchObject({ numTrajectories: 40, relearned: [{ model: 'small' }] });
    expect(report.relearned[0]!.reason).toContain('learned again');
    const without = createSonaHarness({ minExamples: 4 });
    for (let i = 0; i < 40; i++) await without.add(1);
    await without.open().backgroundConsolidate('acme', 'small');
    expect(hashServed()).toBe(hashesOf(without.served.get('acme')));
  });

  test('prevents a rollback to versions that learned from them', async () => {
    await teach(40);
    for (let i = 0; i < 40; i++) await harness.add(1, { userId: 'eve' });
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    await sona.forget('acme', ofEve);
    await expect(sona.rollback('acme', 'small', 1)).rejects.toMatchObject({ code: 'not_found' });
    expect(await sona.versions.active('acme', line)).toMatchObject({ version: 2 });
  });

  test('serves the model file if too few requests remain', async () => {
    for (let i = 0; i < 40; i++) await harness.add(1, { userId: 'eve' });
    const sona = harness.open({ instantLearningRate: 0.05 });
    await sona.backgroundConsolidate('acme', 'small');
    const { relearned } = await sona.forget('acme', ofEve);
    expect(relearned[0]!.reason).toContain('base model');
    expect(harness.served.get('acme')).toEqual(NOTHING);
  });

  test('removes steps of loop A, also without a loaded model', async () => {
    const sona = harness.open({ instantLearningRate: 0.05 });
    await sona.instantAdapt('acme', await harness.add(1, { userId: 'eve' }));
    harness.setLoaded(false);
    const { relearned } = await sona.forget('acme', ofEve);
    expect(relearned[0]!.reason).toContain('not loaded');
    harness.setLoaded(true);
    harness.served.clear();
    await harness.open().restore('acme', 'small');
    expect(harness.served.get('acme')).toEqual(NOTHING);
  });

  test('changes nothing for requests that were not learned from', async () => {
    await teach(40);
    await harness.add(null, { userId: 'eve' });
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    const served = hashServed();
    expect(await sona.forget('acme', ofEve)).toEqual({ numTrajectories: 1, relearned: [] });
    expect(hashServed()).toBe(served);
  });
});

test('loops run when they are due (LB8)', async () => {
  const sona = harness.open({ backgroundEveryMs: 1000, deepEveryMs: 5000 });
  expect(await sona.maybeBackground('acme', 'small')).toBeNull();
  await teach(40);
  expect(await sona.maybeBackground('acme', 'small')).toMatchObject({ version: { version: 1 } });
  await teach(40, 'a red zog');
  expect(await sona.maybeBackground('acme', 'small')).toBeNull();
  harness.services.timeMs += 1001;
  expect(await sona.maybeBackground('acme', 'small')).not.toBeNull();
  expect(await sona.shouldTriggerDeep('acme', 'small')).toBe(true);
  expect(await sona.deepOptimize('acme', 'small')).toMatchObject({ adapter: { version: { loop: 'deep' } } });
  expect(await sona.shouldTriggerDeep('acme', 'small')).toBe(false);
});
