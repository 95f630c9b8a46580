import { afterEach, describe, expect, test } from 'vitest';
import type { TrainingModel } from '../lora-training/types.ts';
import { openTinyModel } from '../sona/harness.contract.ts';
import { createAdapterWork } from '../sona/adapter-work.ts';
import { decodeCheckpoint, encodeCheckpoint } from './checkpoint-file.ts';
import { reportHeldOut } from './report.ts';
import { rateShare } from './schedule.ts';
import { type RunHooks, type RunProgress, runTraining, type TrainingJob } from './training-run.ts';

const plan = { path: 'tiny', rank: 2, numLayers: 1, maxTokens: 16 };
const items = Array.from({ length: 6 }, (_, i) => ({ tokenIds: [5 + i, 17, 80, 33 + i, 60], numPromptTokens: 2 }));
const job: TrainingJob = {
  plan,
  objective: { kind: 'sft' },
  items,
  settings: {
    numEpochs: 4,
    batchSize: 2,
    learningRate: 0.02,
    schedule: 'cosine',
    numWarmupSteps: 2,
    seed: 3,
    evaluateEvery: null,
    patience: 0,
  },
};

let work = createAdapterWork(openTinyModel, () => performance.now());
afterEach(async () => {
  await work.release();
  work = createAdapterWork(openTinyModel, () => performance.now());
});

const hooks = (more: Partial<RunHooks> = {}): RunHooks => ({
  evaluate: null,
  save: () => {},
  saveEveryMs: 1e9,
  onStep: () => {},
  signal: new AbortController().signal,
  now: () => 0,
  ...more,
});
/** The loss of other examples, for validation. */
const evaluate = async (parameters: Float32Array): Promise<number> => {
  const { losses } = await work.losses(
    plan,
    [{ tokenIds: [40, 17, 80, 12, 60], numPromptTokens: 2 }],
    parameters,
    null,
  );
  return losses[0]!;
};

describe('[TR8] a run', () => {
  test('that was stopped continues to the same bits, through the bytes of its checkpoint', async () => {
    const settings = { ...job.settings, evaluateEvery: 2, patience: 50 };
    const whole = await runTraining(work, { ...job, settings }, hooks({ evaluate }));
    expect(whole).toMatchObject({ numSteps: 12, stoppedBy: 'end' });
    for (const stopAt of [2, 6, 10]) {
      const stopped = new AbortController();
      let bytes: Uint8Array | null = null;
      const run = { data: 'abc', learningRate: 0.02 };
      const save = (progress: RunProgress): void => void (bytes = encodeCheckpoint(run, progress));
      const onStep = ({ step }: { step: number }): void => void (step >= stopAt && stopped.abort());
      await expect(
        runTraining(work, { ...job, settings }, hooks({ evaluate, save, onStep, signal: stopped.signal })),
      ).rejects.toMatchObject({ code: 'aborted' });
      // As files are read: small ones share one buffer.
      const shared = Buffer.concat([Buffer.alloc(12), bytes!]).subarray(12);
      const progress = decodeCheckpoint(shared, run, 'x.checkpoint');
      expect(progress.state.numSteps).toBeGreaterThanOrEqual(stopAt);
      expect(progress.state.numSteps).toBeLessThan(12);
      const resumed = await runTraining(work, { ...job, settings }, hooks({ evaluate }), progress);
      expect(resumed).toEqual(whole);
    }
  });

  test('ends when each of its steps takes longer than a slice', async () => {
    const whole = await runTraining(work, job, hooks());
    await work.release();
    let ms = 0;
    // Every look at the clock finds it 400 ms later: a slice of a second ends before the second example of a step.
    work = createAdapterWork(openTinyModel, () => (ms += 400));
    const stuck = new AbortController();
    let numSlices = 0;
    const onStep = (): void => void (++numSlices > 50 && stuck.abort());
    expect(await runTraining(work, job, hooks({ onStep, signal: stuck.signal }))).toEqual(whole);
  });

  test('[TR13] of self-distillation computes the distributions of the teacher once, although each slice sends its items again', async () => {
    let numTaught = 0;
    const counting = async (given: typeof plan): Promise<TrainingModel> => {
      const model = await openTinyModel(given);
      const loss: TrainingModel['loss'] = (parameters, ...more) => {
        if (parameters === null) numTaught++;
        return model.loss(parameters, ...more);
      };
      return { ...model, loss };
    };
    await work.release();
    work = createAdapterWork(counting, () => performance.now());
    const pairs = items.map((student) => ({ student, teacher: { tokenIds: [90, ...student.tokenIds], numPromptTokens: 3 } })); // prettier-ignore
    const distill = { ...job, objective: { kind: 'distill', divergence: 'forward' }, items: pairs } as const;
    const again = structuredClone(distill);
    const { parameters } = await runTraining(
      work,
      { ...again, settings: { ...job.settings, evaluateEvery: 1 } },
      hooks(),
    );
    expect(numTaught).toBe(items.length);
    await work.release();
    work = createAdapterWork(openTinyModel, () => performance.now());
    // One call, in which the model and its objective are new.
    expect((await runTraining(work, distill, hooks())).parameters).toEqual(parameters);
  });

  test('refuses the checkpoint of another run, and a damaged one', async () => {
    let saved: RunProgress | null = null;
    await runTraining(work, job, hooks({ evaluate, save: (progress) => void (saved = progress) }));
    const run = { method: 'sft', data: 'abc', learningRate: 0.02 };
    const bytes = encodeCheckpoint(run, saved!);
    const decode = (of: Uint8Array, as: Record<string, string | number>) => () =>
      decodeCheckpoint(of, as, 'x.checkpoint');
    expect(decode(bytes, { ...run, data: 'abd' })).toThrow(
      expect.objectContaining({ code: 'conflict', message: 'x.checkpoint belongs to another run: data abc, here abd' }),
    );
    expect(decode(bytes, { ...run, beta: 0.1 })).toThrow('beta none, here 0.1');
    expect(decode(bytes.slice(0, -4), run)).toThrow('bytes of weights');
    const flipped = bytes.slice();
    flipped[flipped.length - 9]! ^= 1;
    expect(decode(flipped, run)).toThrow('do not match their hash');
    expect(decode(new Uint8Array(50), run)).toThrow('does not begin like one');
    expect(decode(bytes.slice(0, 40), run)).toThrow('unreadable');
    expect(decodeCheckpoint(bytes, run, 'x').state.numSteps).toBe(12);
  });
});

describe('[TR9] early stop', () => {
  test('returns the parameters of the best evaluation and ends after as many worse ones as patience allows', async () => {
    const losses = [3, 2, 2.5, 2.4, 2.1, 1];
    const seen: Float32Array[] = [];
    const result = await runTraining(
      work,
      { ...job, settings: { ...job.settings, evaluateEvery: 2, patience: 3 } },
      hooks({ evaluate: async (parameters) => losses[seen.push(parameters) - 1]! }),
    );
    expect(result).toMatchObject({ stoppedBy: 'early-stop', numSteps: 10, bestStep: 4 });
    expect(result.parameters).toEqual(seen[1]);
    expect(result.evaluations.map(({ step, loss }) => `${step}: ${loss}`)).toEqual(['2: 3', '4: 2', '6: 2.5', '8: 2.4', '10: 2.1']); // prettier-ignore
  });

  test('without a validation part the last parameters are the result', async () => {
    const result = await runTraining(work, job, hooks());
    expect(result).toMatchObject({ stoppedBy: 'end', numSteps: 12, bestStep: 12, evaluations: [] });
  });
});

test('[TR10] the rate rises in the warm-up and falls as the schedule says', () => {
  const shares = (name: 'constant' | 'linear' | 'cosine', numWarmupSteps = 0): number[] =>
    Array.from({ length: 8 }, (_, i) => Number(rateShare({ name, numWarmupSteps, numSteps: 8 }, i).toFixed(3)));
  expect(shares('constant')).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  expect(shares('linear')).toEqual([1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]);
  expect(shares('cosine')).toEqual([1, 0.962, 0.854, 0.691, 0.5, 0.309, 0.146, 0.038]);
  expect(shares('linear', 4)).toEqual([0.2, 0.4, 0.6, 0.8, 1, 0.75, 0.5, 0.25]);
  expect(rateShare({ name: 'linear', numWarmupSteps: 9, numSteps: 8 }, 20)).toBe(0);
});

test('[TR10] the schedule reaches the optimizer', async () => {
  const parametersOf = async (more: Partial<TrainingJob['settings']>): Promise<Float32Array> =>
    (await runTraining(work, { ...job, settings: { ...job.settings, numEpochs: 1, ...more } }, hooks())).parameters;
  const plain = await parametersOf({ schedule: 'constant', numWarmupSteps: 0 });
  expect(await parametersOf({ schedule: 'linear', numWarmupSteps: 0 })).not.toEqual(plain);
  expect(await parametersOf({ schedule: 'constant', numWarmupSteps: 2 })).not.toEqual(plain);
});

test('[TR11] the interval of the report counts prompts, not items', () => {
  const before = [2, 2, 2, 2, 2, 2];
  const after = [1.9, 1.5, 1.6, 1.4, 1.8, 1.7];
  const apart = reportHeldOut('nats', before, after, ['a', 'b', 'c', 'd', 'e', 'f']);
  expect(apart).toMatchObject({ count: 6, numPrompts: 6, before: 2, isSurelyBetter: true });
  expect(apart.change).toBeCloseTo(-0.35, 10);
  const together = reportHeldOut('nats', before, after, ['a', 'a', 'a', 'b', 'b', 'b']);
  expect(together.high! - together.low!).toBeGreaterThan(apart.high! - apart.low!);
  expect(reportHeldOut('nats', before, after, before.map(() => 'a'))).toMatchObject({ low: null, high: null, isSurelyBetter: false }); // prettier-ignore
});
