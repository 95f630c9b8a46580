// Loop B of a model whose layers are too slow to train: only the LM head learns, from hidden states of the serving engine.
import { beforeEach, describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { createSonaHarness } from './harness.contract.ts';

const LIMIT_MS = 10_000;
/** Opening the model for training would exceed every limit. */
const NEVER_OPEN = { open: 1e9, loss: 0, gradient: 0 };
let harness: ReturnType<typeof createSonaHarness>;
let numExamined: number;

/** Every answer takes this long to examine. */
function setUp(examineMs: number): void {
  numExamined = 0;
  harness = createSonaHarness({ minExamples: 4, backgroundLimitMs: LIMIT_MS }, null, [
    { question: 'How are you?', answer: 'well' },
  ]);
  const { examine } = harness.model;
  Object.assign(harness.model, {
    numParameters: 1.1e9,
    async examine(...given: Parameters<typeof examine>) {
      const { timeoutMs = Infinity } = given[2] ?? {};
      harness.services.timeMs += Math.min(examineMs, timeoutMs);
      if (timeoutMs < examineMs) throw new RuvLLMError('deadline_exceeded', 'too late');
      numExamined++;
      return examine(...given);
    },
  });
}

async function runB() {
  const startMs = harness.services.timeMs;
  const report = await harness.open({}, NEVER_OPEN).backgroundConsolidate('acme', 'small');
  return { report, spentMs: harness.services.timeMs - startMs };
}

describe('[LB16] a large model', () => {
  beforeEach(() => setUp(10));

  test('learns in the LM head without loading weights', async () => {
    for (let i = 0; i < 40; i++) await harness.add(1);
    const { report, spentMs } = await runB();
    expect(report.version).toMatchObject({ version: 1, isAccepted: true });
    expect(spentMs).toBeLessThanOrEqual(LIMIT_MS);
    const { trained } = harness.served.get('acme')!;
    expect(trained!.factors.map(({ target }) => target)).toEqual(['output']);
  });

  test('starts from the version that serves and compares with it', async () => {
    for (let i = 0; i < 40; i++) await harness.add(1);
    const first = (await runB()).report.version!;
    for (let i = 0; i < 20; i++) await harness.add(1);
    const second = (await runB()).report.version!;
    // The gain of the first version is not made twice.
    expect(second.metrics['held_out_before']).toBeLessThan(first.metrics['held_out_before']! - 0.1);
  });

  test('[LB19] decides on 16 ratings by cross-validation, because few of them are held out', async () => {
    for (let i = 0; i < 16; i++) await harness.add(1);
    const { report } = await runB();
    expect(report.numHeldOut).toBeLessThan(8);
    expect(report.version).toMatchObject({ isAccepted: true, metrics: { cross_validated: report.numTrained } });
    expect(report.version!.metrics['held_out_count']).toBe(16);
    expect(report.reason).toContain(`; ${report.numTrained} examples by cross-validation`);
  });

  test('[LB19] leaves cross-validation to the next run if examining took the time', async () => {
    setUp(300);
    for (let i = 0; i < 14; i++) await harness.add(1);
    const sona = harness.open({}, NEVER_OPEN);
    const { train } = harness.work();
    // The version is trained in time, its folds are not.
    let numTrained = 0;
    harness.work().train = async (job) => {
      if (++numTrained === 2) harness.services.timeMs += LIMIT_MS;
      return train(job);
    };
    const first = await sona.backgroundConsolidate('acme', 'small');
    expect(first.numHeldOut).toBeLessThan(4);
    expect(first).toMatchObject({ version: null, isUnfinished: true });
    expect(first.reason).toBe('too little time is left for cross-validation; the next run continues');
    const second = await sona.backgroundConsolidate('acme', 'small');
    expect(second.version).toMatchObject({ isAccepted: true, metrics: { cross_validated: second.numTrained } });
  });

  test('forgets the examined answers with the requests', async () => {
    for (let i = 0; i < 40; i++) await harness.add(1, { userId: 'eve' });
    await runB();
    const count = () =>
      harness.store.count('acme', {
        kinds: ['state'],
        filter: { fields: [{ field: 'name', is: '=', value: 'examined' }] },
      });
    expect(await count()).toBeGreaterThan(40);
    await harness.open({}, NEVER_OPEN).forget('acme', [{ field: 'userId', is: '=', value: 'eve' }]);
    expect(await count()).toBe(0);
  });
});

test('[LB17] a run that ends too early continues with the next one, each within the limit', async () => {
  setUp(1000);
  for (let i = 0; i < 40; i++) await harness.add(1);
  const reasons: string[] = [];
  for (let run = 0; run < 10; run++) {
    const { report, spentMs } = await runB();
    expect(spentMs).toBeLessThanOrEqual(LIMIT_MS);
    if (report.version !== null) {
      expect(report.version.reason).toContain('the held-out loss falls');
      break;
    }
    expect(report.isUnfinished).toBe(true);
    reasons.push(report.reason);
  }
  expect(reasons[0]).toBe('examined 7 of 41 answers, 7 of them in this run; the next run continues');
  // Training would not fit into what examining left.
  expect(reasons.at(-1)).toBe('examined all 41 answers, 6 of them in this run; the next run trains');
  expect(reasons.length).toBe(6);
  // None twice, and the probe.
  expect(numExamined).toBe(40 + 1);
});

test('[LB17] an unfinished run is due again at once', async () => {
  setUp(1000);
  for (let i = 0; i < 20; i++) await harness.add(1);
  const sona = harness.open({}, NEVER_OPEN);
  expect(sona.lastRun('acme', 'small')).toBeNull();
  expect(await sona.maybeBackground('acme', 'small')).toMatchObject({ isUnfinished: true });
  expect(sona.lastRun('acme', 'small')).toMatchObject({
    loop: 'background',
    isUnfinished: true,
    reason: expect.stringContaining('the next run continues') as string,
  });
  expect(await sona.maybeBackground('acme', 'small')).toMatchObject({ version: null });
});
