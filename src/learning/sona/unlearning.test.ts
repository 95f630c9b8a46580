import { beforeEach, describe, expect, test } from 'vitest';
import { createFloatBlobs } from '../versions/blobs.ts';
import { createCheckpoints } from './checkpoint.ts';
import { isHeldOut } from './examples.ts';
import { createSonaHarness } from './harness.contract.ts';
import { adapterLine, getLearnedAdapter } from './learned-adapter.ts';
import type { Served } from './types.ts';

let harness: ReturnType<typeof createSonaHarness>;
const line = adapterLine('small');
const NOTHING = { trained: null, instant: null };
const ofEve = [{ field: 'userId', is: '=', value: 'eve' }] as const;
const ofRequest = (id: string) => [{ field: 'requestId', is: '=', value: id }] as const;
const hashesOf = (served: Served | undefined) => [served?.trained?.contentHash, served?.instant?.contentHash];

beforeEach(() => {
  harness = createSonaHarness({ minExamples: 4, instantLearningRate: 0.05 });
});

async function teach(count = 40, changes: Parameters<typeof harness.add>[1] = {}, to = harness): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await to.add(1, changes));
  return ids;
}

/** Everything that was learned, as another process finds it. */
async function restart(): Promise<Served> {
  harness.store.onCall = () => {};
  harness.served.clear();
  await harness.open().restore('acme', 'small');
  return harness.served.get('acme')!;
}

describe('steps of loop A and versions (LB3)', () => {
  test('repeats steps from held-out requests on top of a version', async () => {
    const ids = await teach();
    const held = ids.find(isHeldOut)!;
    const trained = ids.find((id) => !isHeldOut(id))!;
    const sona = harness.open();
    for (const id of [trained, held]) await sona.instantAdapt('acme', id);
    expect(await sona.taught('acme', 'small')).toEqual([trained, held]);
    expect((await sona.backgroundConsolidate('acme', 'small')).version).toMatchObject({ isAccepted: true });
    expect(await sona.taught('acme', 'small')).toEqual([held]);
    expect(harness.served.get('acme')!.instant).not.toBeNull();
  });

  test('does not add steps twice after a crash', async () => {
    const ids = await teach();
    const sona = harness.open();
    await sona.instantAdapt(
      'acme',
      ids.find((id) => !isHeldOut(id))!,
    );
    let isWritten = false;
    harness.store.onCall = (operation, argument) => {
      if (isWritten) throw new Error('killed');
      const records = argument as { fields?: { name?: string } }[];
      isWritten = operation === 'put' && records.some?.(({ fields }) => fields?.name?.startsWith('learned-version')) === true; // prettier-ignore
    };
    await expect(sona.backgroundConsolidate('acme', 'small')).rejects.toThrow('killed');
    const served = await restart();
    expect(served.trained).not.toBeNull();
    expect(served.instant).toBeNull();
  });
});

describe('shared weights (LV1)', () => {
  test('a run without a step does not delete the active weights', async () => {
    await teach();
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    const before = hashesOf(harness.served.get('acme'));
    const active = (await sona.versions.active('acme', line))!;
    const { parameters } = await getLearnedAdapter(createFloatBlobs(harness.store, harness.services), 'acme', active);
    const checkpoints = createCheckpoints(harness.store, harness.services);
    const state = { parameters, first: parameters, second: parameters, numSteps: 0 };
    await checkpoints.put('acme', line, 'key', state as never);
    expect(await checkpoints.get('acme', line, 'key')).toMatchObject({ numSteps: 0, parameters });
    expect(await checkpoints.get('acme', line, 'other key')).toBeNull();
    await checkpoints.delete('acme', line);
    expect(hashesOf(await restart())).toEqual(before);
  });

  test('forgetting requests of a later version keeps the earlier one (LB6)', async () => {
    await teach();
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    const first = hashesOf(harness.served.get('acme'));
    await teach(40, { userId: 'eve', answer: 'a blue zog!' });
    expect((await sona.backgroundConsolidate('acme', 'small')).version).toMatchObject({ version: 2, isAccepted: true });
    await sona.forget('acme', ofEve);
    await expect(sona.rollback('acme', 'small', 2)).rejects.toMatchObject({ code: 'not_found' });
    await sona.rollback('acme', 'small', 1);
    expect(hashesOf(harness.served.get('acme'))).toEqual(first);
  });
});

describe('forgetting (LF1)', () => {
  test('repeats the remaining steps of loop A to the same weights as without the forgotten ones', async () => {
    const sona = harness.open();
    const kept = await teach(2);
    const gone = await harness.add(1, { userId: 'eve', answer: 'my secret' });
    for (const id of [kept[0]!, gone, kept[1]!]) await sona.instantAdapt('acme', id);
    const { relearned } = await sona.forget('acme', ofEve);
    expect(relearned).toEqual([{ model: 'small', reason: 'single answers were learned again from 2 of them' }]);
    const without = createSonaHarness({ instantLearningRate: 0.05 });
    for (const id of await teach(2, {}, without)) await without.open().instantAdapt('acme', id);
    expect(hashesOf(harness.served.get('acme'))).toEqual(hashesOf(without.served.get('acme')));
    expect(await sona.taught('acme', 'small')).toEqual(kept);
  });

  test('removes what an expired request taught, by its id', async () => {
    const [first] = await teach();
    const trained = isHeldOut(first!) ? (await teach(1))[0]! : first!;
    const sona = harness.open();
    await sona.backgroundConsolidate('acme', 'small');
    await harness.trajectories.remove('acme', ofRequest(trained));
    const report = await sona.forget('acme', ofRequest(trained));
    expect(report).toMatchObject({ numTrajectories: 0, relearned: [{ model: 'small' }] });
    expect((await sona.versions.active('acme', line))?.learnedFrom ?? []).not.toContain(trained);
    await expect(sona.rollback('acme', 'small', 1)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('completes an interrupted deletion at the next start', async () => {
    let numCalls = 0;
    for (let at = 1; ; at += 4) {
      harness = createSonaHarness({ minExamples: 4, instantLearningRate: 0.05 });
      await teach(12);
      const eve = await teach(12, { userId: 'eve' });
      const sona = harness.open();
      await sona.backgroundConsolidate('acme', 'small');
      await sona.instantAdapt('acme', eve[0]!);
      let count = 0;
      harness.store.onCall = () => {
        if (++count > at) throw new Error('killed');
      };
      const outcome = await sona.forget('acme', ofEve).then(
        () => 'done',
        () => 'killed',
      );
      numCalls++;
      const { instant } = await restart();
      const again = harness.open();
      const left = await harness.trajectories.find('acme', { conditions: ofEve, limit: 100 });
      const active = await again.versions.active('acme', line);
      // Before the first note nothing has begun: all is as it was.
      const isUntouched = left.length === eve.length && active?.version === 1;
      if (!isUntouched) {
        expect(left, `killed at call ${at}`).toEqual([]);
        expect(
          (active?.learnedFrom ?? []).filter((id) => eve.includes(id)),
          `killed at call ${at}`,
        ).toEqual([]);
        expect(instant).toBeNull();
      }
      if (outcome === 'done') break;
    }
    expect(numCalls).toBeGreaterThan(5);
  });

  test('deletes the checkpoint of a run that had read the forgotten requests', async () => {
    await teach(20);
    await teach(20, { userId: 'eve' });
    const stop = new AbortController();
    const sona = harness.open({ sliceMs: 100 }, { open: 0, loss: 1, gradient: 20 });
    harness.onCheckpoint(() => stop.abort());
    const running = sona.backgroundConsolidate('acme', 'small', { signal: stop.signal });
    await expect(running).rejects.toMatchObject({ code: 'aborted' });
    harness.onCheckpoint(null);
    const named = async (name: string) =>
      (await harness.store.find('acme', { kinds: ['state'], filter: { fields: [{ field: 'name', is: '=', value: name }] }, limit: 10, order: 'oldest' })).records.length; // prettier-ignore
    expect(await named('checkpoint')).toBe(1);
    await sona.instantAdapt('acme', await harness.add(1));
    await sona.forget('acme', ofEve);
    expect(await named('checkpoint')).toBe(0);
    expect(await named('forgetting')).toBe(0);
  });
});

describe('loops without new examples (LB10)', () => {
  test('do not repeat a version that was rolled back', async () => {
    await teach();
    const sona = harness.open({ backgroundEveryMs: 1000 });
    await sona.maybeBackground('acme', 'small');
    await sona.rollback('acme', 'small', 0);
    harness.services.timeMs += 1001;
    expect(await sona.maybeBackground('acme', 'small')).toMatchObject({
      version: null,
      reason: 'nothing was rated since version 1, which was made of the same and taken back',
    });
    expect(harness.served.get('acme')).toEqual(NOTHING);
    await teach(1);
    expect(await sona.backgroundConsolidate('acme', 'small')).toMatchObject({ version: { version: 2 } });
  });

  test('do not repeat a refused version and wait for the next interval', async () => {
    // The same answer is praised and rejected: nothing surely gets better.
    for (let i = 0; i < 40; i++) await harness.add(i % 2, { query: '1?' });
    const sona = harness.open({ backgroundEveryMs: 1000 });
    expect(await sona.maybeBackground('acme', 'small')).toMatchObject({ version: { version: 1, isAccepted: false } });
    harness.services.timeMs += 1001;
    const again = await sona.maybeBackground('acme', 'small');
    expect(again).toMatchObject({ version: null, reason: expect.stringContaining('version 1, which was refused') as string }); // prettier-ignore
    expect(await sona.maybeBackground('acme', 'small')).toBeNull();
    expect(await sona.versions.history('acme', line)).toHaveLength(1);
    expect(harness.served.has('acme')).toBe(false);
  });

  test('do not continue a stopped run with other examples', async () => {
    const ids = await teach();
    const stop = new AbortController();
    const sona = harness.open({ sliceMs: 100 }, { open: 0, loss: 1, gradient: 20 });
    harness.onCheckpoint(() => stop.abort());
    const running = sona.backgroundConsolidate('acme', 'small', { signal: stop.signal });
    await expect(running).rejects.toMatchObject({ code: 'aborted', message: expect.stringContaining('after 1 steps') });
    harness.onCheckpoint(null);
    const fresh = createSonaHarness({ minExamples: 4 });
    const others = await teach(40, {}, fresh);
    for (const [to, list] of [
      [harness, ids],
      [fresh, others],
    ] as const) {
      for (const id of list) {
        await to.trajectories.rate('acme', { requestId: id, correction: 'a red zog' });
      }
      await to.open().backgroundConsolidate('acme', 'small');
    }
    expect(hashesOf(harness.served.get('acme'))).toEqual(hashesOf(fresh.served.get('acme')));
  });

  test('make no version when stopped during evaluation', async () => {
    await teach();
    const stop = new AbortController();
    const sona = harness.open();
    const work = harness.work();
    const { losses } = work;
    const isOfTrained = (args: Parameters<typeof losses>): boolean => args[2] !== null;
    Object.assign(work, {
      losses: async (...args: Parameters<typeof losses>) => (isOfTrained(args) && stop.abort(), losses(...args)),
    });
    await expect(sona.backgroundConsolidate('acme', 'small', { signal: stop.signal })).rejects.toMatchObject({
      code: 'aborted',
    });
    expect(await sona.versions.history('acme', line)).toEqual([]);
    expect(harness.served.has('acme')).toBe(false);
  });
});

test('an erased tenant gets the model file, and its loops end (LF1)', async () => {
  await teach();
  const sona = harness.open();
  await sona.backgroundConsolidate('acme', 'small');
  await teach(20, { answer: 'a red zog' });
  const running = sona.deepOptimize('acme', 'small');
  const ended = expect(running).rejects.toMatchObject({ code: 'aborted' });
  await new Promise((resolve) => setTimeout(resolve, 20));
  await sona.leaveTenant('acme', ['small']);
  await ended;
  expect(harness.served.get('acme')).toEqual(NOTHING);
});

test('forgets a request whose instant loop is still running', async () => {
  const [id] = await teach(1);
  const { examine } = harness.model;
  let start = (): void => {};
  let proceed = (): void => {};
  const started = new Promise<void>((resolve) => (start = resolve));
  const gate = new Promise<void>((resolve) => (proceed = resolve));
  Object.assign(harness.model, {
    async examine(...args: Parameters<typeof examine>) {
      start();
      await gate;
      return examine(...args);
    },
  });
  const sona = harness.open();
  const adapting = sona.instantAdapt('acme', id!);
  await started;
  const forgetting = sona.forget('acme', ofRequest(id!));
  // The trajectory is deleted while the loop still runs with its copy.
  await expect.poll(() => harness.trajectories.get('acme', id!)).toBeNull();
  await new Promise((resolve) => setTimeout(resolve, 20));
  proceed();
  expect((await adapting).isApplied).toBe(true);
  expect(await forgetting).toMatchObject({ numTrajectories: 1, relearned: [{ model: 'small' }] });
  expect(await sona.taught('acme', 'small')).toEqual([]);
  expect(harness.served.get('acme')).toEqual(NOTHING);
});
