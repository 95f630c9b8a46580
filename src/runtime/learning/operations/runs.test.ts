import { describe, expect, test } from 'vitest';
import type { Learning } from '../learning.ts';
import { createLearningControl } from './control.ts';
import { giveFeedback } from './give-feedback.ts';
import type { Feedback } from '../../../learning/trajectories/feedback.ts';
import { plainRequestId } from '../../../memory/schemas/trajectory.ts';
import { createTestLearning } from './harness.contract.ts';
import { createLearningRuns } from './runs.ts';

const REPORT = { version: null, reason: 'enough', numTrained: 1, numHeldOut: 0, numElsewhere: 0, elapsedMs: 1 };

/** Runs whose loops end when they are told to, or with their signal. */
function createBench() {
  const ends = new Map<string, () => void>();
  let nowMs = 1000;
  const backgroundConsolidate = (tenant: string, model: string, { signal }: { signal: AbortSignal }) =>
    new Promise<typeof REPORT>((resolve, reject) => {
      ends.set(`${tenant}/${model}`, () => resolve(REPORT));
      signal.addEventListener('abort', () => reject(new Error('stopped')));
    });
  const reranking = { train: async () => ({ numLists: 0, version: null, reason: 'none' }) };
  const runs = createLearningRuns({
    noRouting: 'no routes',
    learning: { sona: { backgroundConsolidate, reranking }, parts: () => [] } as unknown as Pick<
      Learning,
      'sona' | 'parts' | 'pathOf'
    >,
    now: () => (nowMs += 0.5),
    hold: (id, work) => work(id),
  });
  return { runs, end: (key: string) => ends.get(key)!(), setNow: (ms: number) => (nowMs = ms) };
}

describe('[LO6] runs', () => {
  test('tell when they began and ended, in whole milliseconds', async () => {
    const { runs, end, setNow } = createBench();
    const { ended } = runs.start('acme', 'small', 'background');
    expect(runs.list('acme')).toMatchObject([{ state: 'running', startedMs: 1000, endedMs: null }]);
    setNow(5000);
    end('acme/small');
    expect(await ended).toMatchObject({ state: 'done', startedMs: 1000, endedMs: 5000, reason: 'enough' });
  });

  test('of 32 at a time, and a thousand that are remembered; those that run are never forgotten', async () => {
    const { runs, end } = createBench();
    for (let i = 0; i < 31; i++) runs.start('first', `m${i}`, 'background');
    for (let i = 0; i < 1000; i++) {
      const { ended } = runs.start('acme', `m${i}`, 'background');
      end(`acme/m${i}`);
      await ended;
    }
    expect(runs.list('first')).toHaveLength(31);
    expect(runs.list('acme').length).toBeLessThanOrEqual(1000 - 31);
    expect(runs.list('acme').at(-1)).toMatchObject({ model: 'm999', state: 'done' });
    runs.start('acme', 'last', 'background');
    expect(() => runs.start('acme', 'one more', 'background')).toThrow(/32 runs are in progress/);
  });

  test('end when they are closed, as cancelled', async () => {
    const { runs } = createBench();
    const { ended } = runs.start('acme', 'small', 'background');
    await runs.close();
    expect(await ended).toMatchObject({ state: 'cancelled', reason: 'stopped' });
  });
});

describe('[LO4] which model is meant', () => {
  test('the only one, the one that is named, or none of several', async () => {
    const { learning, memory } = await createTestLearning();
    const among = (models: string[]) => createLearningControl({ learning, memory, models: () => models });
    expect(among(['small']).modelName(undefined)).toBe('small');
    expect(among(['small', 'large']).modelName('large')).toBe('large');
    expect(() => among(['small', 'large']).modelName(undefined)).toThrow('name a model (loaded: small, large)');
    expect(() => among([]).modelName(undefined)).toThrow('name a model (none is loaded)');
  });

  test('a control that is closed leaves no run behind', async () => {
    const desk = await createTestLearning();
    await desk.teach(40);
    const { train } = desk.work;
    let isTraining = (): void => {};
    const began = new Promise<void>((resolve) => (isTraining = resolve));
    // Never done, and with room for others in between: only its signal ends it.
    Object.assign(desk.work, {
      async train(job: object) {
        isTraining();
        await new Promise((resolve) => setTimeout(resolve, 1));
        return { ...(await train({ ...job, timeLimitMs: 1 } as never)), isDone: false };
      },
    });
    await desk.run('learn.run', { waitMs: 0 });
    await began;
    await desk.control.close();
    expect(desk.control.runs.list('acme')).toMatchObject([{ state: 'cancelled' }]);
  });

  test('a run of one model tells of that model', async () => {
    const { control, run, learning } = await createTestLearning();
    const { models } = learning;
    Object.assign(learning, { models: () => [...models(), 'other'] });
    await run('learn.run', { model: 'small', waitMs: 20_000 });
    expect(await run('learn.run', { model: 'other', waitMs: 20_000 })).toMatchObject({
      model: 'other',
      state: 'failed',
    });
    expect(control.runs.list('acme').map(({ model }) => model)).toEqual(['small', 'other']);
  });
});

describe('[LO1] words on their way', () => {
  test('ids are understood with the prefix of every format', () => {
    for (const prefix of ['chatcmpl-', 'cmpl-', 'resp_', 'msg_', ''])
      expect(plainRequestId(`${prefix}0199`)).toBe('0199');
  });

  test('what was learned, refused, or nothing are told apart', async () => {
    const said = (isApplied: boolean, reason: string) =>
      giveFeedback(
        {
          feedback: async (_tenant: string, { requestId }: Feedback) => ({
            requestId,
            verdict: 'success' as const,
            quality: 1,
            remembered: null,
            outcome: Promise.resolve({
              state: 'learned' as const,
              reason,
              lossBefore: 2,
              lossAfter: 1,
              supersedes: [],
            }),
            learned: Promise.resolve({
              outcome: isApplied ? ('learned' as const) : ('refused' as const),
              isApplied,
              reason,
              lossBefore: 2,
              lossAfter: 1,
              elapsedMs: 1,
              version: 0,
              supersedes: [],
            }),
          }),
        },
        'acme',
        { requestId: '1', thumbs: 'up', source: 'ui' },
        1000,
      );
    expect((await said(true, 'loss 2 → 1')).learned.state).toBe('applied');
    expect((await said(false, 'refused: earlier answers would lose 0.300, more than 0.25')).learned.state).toBe(
      'refused',
    );
    expect(await said(false, 'nothing to learn: neutral')).toMatchObject({
      requestId: '1',
      learned: { state: 'nothing' },
    });
  });
});

describe('[LO4] versions', () => {
  test('what differs, which serves and what is exported are of the versions that were named', async () => {
    const desk = await createTestLearning();
    const { run, teach, add } = desk;
    const first = await teach(40);
    await run('learn.run', { waitMs: 50_000 });
    await teach(40);
    await run('learn.run', { waitMs: 50_000 });
    const history = await run<{ serves: number; versions: { numLearnedFrom: number }[] }>('learn.history');
    const [newer, older] = history.versions.map(({ numLearnedFrom }) => numLearnedFrom);
    expect(history.serves).toBe(2);
    type Diff = { requests: { numAdded: number; numRemoved: number; added: string[]; removed: string[] }; weights: { normFrom: number; normTo: number; normOfChange: number } }; // prettier-ignore
    const back = await run<Diff>('learn.diff', { from: 2, to: 1 });
    expect(back.requests).toMatchObject({ numAdded: 0, numRemoved: newer! - older!, added: [] });
    expect(back.requests.removed).toHaveLength(newer! - older!);
    expect(back.requests.removed.some((id) => first.includes(id))).toBe(false);
    const { normFrom, normTo, normOfChange } = back.weights;
    expect(normOfChange).toBeGreaterThan(0);
    expect(normOfChange).toBeLessThan(normFrom + normTo);
    expect(Math.abs(normFrom - normTo)).toBeLessThan(normOfChange + 1e-9);
    const hashOf = async (input: object) => (await run<{ contentHash: string }>('learn.export', input)).contentHash;
    const [one, two] = [await hashOf({ version: 1 }), await hashOf({ version: 2 })];
    expect(one).not.toBe(two);
    expect(await hashOf({})).toBe(two);
    await run('learn.rollback', { toVersion: 1 });
    expect(await run('learn.history')).toMatchObject({ serves: 1 });
    expect(await hashOf({})).toBe(one);
    await run('feedback', { requestId: await add(), thumbs: 'up', waitMs: 60_000 });
    expect(await run('learn.status')).toMatchObject({ models: [{ serves: { version: 1 }, numSingleAnswers: 1, isDeepDue: true }] }); // prettier-ignore
  });

  test('the status includes models that are not loaded', async () => {
    const { run, learning, memory, add } = await createTestLearning();
    await run('feedback', { requestId: await add(), thumbs: 'up', waitMs: 60_000 });
    const away = createLearningControl({ learning: { ...learning, models: () => [] }, memory });
    const { learningOperation } = await import('./table.ts');
    expect(await learningOperation('learn.status').run(away, 'acme', {})).toMatchObject({
      models: [{ model: 'small', isLoaded: false, numSingleAnswers: 1 }],
    });
  });
});
