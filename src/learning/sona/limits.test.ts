// Time limits of the loops, on a clock that only forward and backward passes advance.
import { beforeEach, describe, expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { type Costs, createSonaHarness } from './harness.contract.ts';
import { adapterLine } from './learned-adapter.ts';
import type { TrainJob } from './types.ts';

/** A model that finishes, one whose evaluation takes long, and one that makes few steps; others lie between them. */
const SPEEDS: readonly Costs[] = [
  { open: 100, loss: 10, gradient: 40 },
  { open: 2000, loss: 30, gradient: 60 },
  { open: 0, loss: 20, gradient: 200 },
  ...campaign({
    short: [],
    long: [
      { open: 500, loss: 40, gradient: 160 },
      { open: 100, loss: 100, gradient: 300 },
    ],
  }),
];
if (campaign({ short: true, long: false })) console.log('two of five speeds of loop B run only in npm run test:long');

let harness: ReturnType<typeof createSonaHarness>;
const line = adapterLine('small');
const LIMIT_MS = 10_000;
beforeEach(() => {
  harness = createSonaHarness({ minExamples: 4, fisherSamples: 100, backgroundLimitMs: LIMIT_MS });
});

async function teach(numRated: number, numUnrated = 0, to = harness): Promise<void> {
  for (let i = 0; i < numRated; i++) await to.add(1);
  for (let i = 0; i < numUnrated; i++) await to.add(null);
}

/** A run of loop B on a model of this speed, and what it took. */
async function runB(costs: Costs, backgroundLimitMs = LIMIT_MS) {
  const sona = harness.open({ backgroundLimitMs }, costs);
  const startMs = harness.services.timeMs;
  const report = await sona.backgroundConsolidate('acme', 'small');
  return { sona, report, spentMs: harness.services.timeMs - startMs };
}

describe('[LB12] the limit covers the whole of loop B', () => {
  test('a fast model finishes training and uses all evaluation and Fisher samples', async () => {
    await teach(40, 16);
    const { report, spentMs } = await runB({ open: 10, loss: 1, gradient: 3 });
    const { held_out_count: heldOut, elsewhere_count: elsewhere, fisher_samples: samples } = report.version!.metrics;
    expect([heldOut, elsewhere, samples]).toEqual([report.numHeldOut, 8, 100]);
    // Three epochs, the judges before and after, the samples, and nothing else.
    const passes = 2 * (report.numHeldOut + 8) + 8 * 2;
    expect(spentMs).toBe(10 + passes + 3 * 3 * report.numTrained + 3 * 100);
  });

  test.each(SPEEDS)('a model of %o ms is done in time', async (costs) => {
    await teach(120, 16);
    const { sona, report, spentMs } = await runB(costs);
    expect(spentMs).toBeLessThanOrEqual(LIMIT_MS);
    expect(spentMs).toBeGreaterThan(LIMIT_MS * 0.5); // what there is is used
    expect(report.version).toMatchObject({ isAccepted: true });
    expect(report.version!.metrics['fisher_samples']).toBeGreaterThanOrEqual(8);
    expect(await sona.versions.active('acme', line)).toMatchObject({ version: 1 });
  });

  test('a model too slow for one step makes no version and waits for the next interval', async () => {
    await teach(40, 16);
    const sona = harness.open({ backgroundLimitMs: LIMIT_MS }, { open: 100, loss: 500, gradient: 2000 });
    await expect(sona.maybeBackground('acme', 'small')).rejects.toMatchObject({
      code: 'deadline_exceeded',
      message: expect.stringMatching(/no step of training fits into 10000 ms/) as string,
    });
    expect(await sona.versions.history('acme', line)).toEqual([]);
    expect(await sona.maybeBackground('acme', 'small')).toBeNull();
  });

  test('a step longer than a slice is still made', async () => {
    await teach(40);
    // A batch takes 1.2 s, a piece has 0.5 s.
    const { report } = await runB({ open: 0, loss: 5, gradient: 300 }, 16_000);
    expect(report.version).not.toBeNull();
    const sona = harness.open({ backgroundLimitMs: 20_000, sliceMs: 500 }, { open: 0, loss: 5, gradient: 300 });
    await teach(40);
    expect((await sona.backgroundConsolidate('acme', 'small')).version).not.toBeNull();
  });
});

test('[LB12] the limit covers the whole of loop C', async () => {
  await teach(120, 16);
  const deepLimitMs = 60_000;
  const sona = harness.open({ deepLimitMs }, { open: 100, loss: 20, gradient: 80 });
  const { distil } = sona.bank;
  Object.assign(sona.bank, {
    distil: async (tenant: string) => {
      harness.services.timeMs += 20_000;
      return distil(tenant);
    },
  });
  const startMs = harness.services.timeMs;
  const { adapter } = await sona.deepOptimize('acme', 'small');
  expect(adapter.version).toMatchObject({ isAccepted: true });
  const spentMs = harness.services.timeMs - startMs;
  expect(spentMs).toBeGreaterThan(50_000);
  expect(spentMs).toBeLessThanOrEqual(deepLimitMs);
});

describe('[LB13] loop B continues after a crash', () => {
  const costs = { open: 10, loss: 5, gradient: 40 };

  test('from its last checkpoint to the same weights', async () => {
    const whole = createSonaHarness({ minExamples: 4, fisherSamples: 100, backgroundLimitMs: LIMIT_MS });
    await teach(60, 0, whole);
    await whole.open({}, costs).backgroundConsolidate('acme', 'small');
    await teach(60);
    const sona = harness.open({}, costs);
    const work = harness.work();
    const { train } = work;
    let numPieces = 0;
    Object.assign(work, {
      train: (job: TrainJob) => {
        if (numPieces++ === 2) throw new Error('the thread is gone');
        return train(job);
      },
    });
    await expect(sona.backgroundConsolidate('acme', 'small')).rejects.toThrow('the thread is gone');
    expect(harness.served.has('acme')).toBe(false);
    // As another process would.
    const again = harness.open({}, costs);
    const states: number[] = [];
    const next = harness.work();
    const { train: trainOn } = next;
    Object.assign(next, { train: (job: TrainJob) => (states.push(job.state?.numSteps ?? 0), trainOn(job)) });
    expect(await again.backgroundConsolidate('acme', 'small')).toMatchObject({ version: { version: 1 } });
    expect(states[0]).toBeGreaterThan(20);
    expect(harness.served.get('acme')!.trained!.contentHash).toBe(whole.served.get('acme')!.trained!.contentHash);
  });

  test('during evaluation, without losing the training', async () => {
    await teach(60);
    const sona = harness.open({}, costs);
    const work = harness.work();
    const dying = async (): Promise<never> => Promise.reject(new Error('the thread is gone'));
    Object.assign(work, { fisher: dying });
    await expect(sona.backgroundConsolidate('acme', 'small')).rejects.toThrow('the thread is gone');
    const again = harness.open({}, costs);
    const states: number[] = [];
    const next = harness.work();
    const { train } = next;
    Object.assign(next, { train: (job: TrainJob) => (states.push(job.state?.numSteps ?? 0), train(job)) });
    expect(await again.backgroundConsolidate('acme', 'small')).toMatchObject({ version: { isAccepted: true } });
    expect(states[0]).toBeGreaterThan(0);
  });
});

test('[LB14] a run stops within two passes during evaluation and Fisher samples', async () => {
  await teach(60, 16);
  for (const method of ['losses', 'fisher'] as const) {
    const stop = new AbortController();
    let spentMs = 0;
    const sona = harness.open({}, { open: 0, loss: 20, gradient: 20 });
    const work = harness.work();
    const { [method]: real } = work;
    let isOn = false;
    Object.assign(work, {
      [method]: async (...args: never[]) => {
        // Losses under what serves come first; those of the trained are meant.
        isOn = method === 'fisher' || args[2] !== null;
        if (isOn) setTimeout(() => stop.abort(), 0);
        const before = harness.services.timeMs;
        return (real as (...given: never[]) => Promise<unknown>)(...args).finally(() => {
          if (isOn) spentMs = harness.services.timeMs - before;
        });
      },
    });
    const run = sona.backgroundConsolidate('acme', 'small', { signal: stop.signal });
    await expect(run).rejects.toMatchObject({ code: 'aborted' });
    expect(spentMs).toBeLessThanOrEqual(40);
  }
  expect(await harness.open().versions.history('acme', line)).toEqual([]);
});
