import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { ModelCatalog, PullStep } from './model-catalog.ts';
import { createPullJobs, type PullJob } from './pull-jobs.ts';

interface FakePull {
  readonly reference: string;
  readonly signal: AbortSignal;
  tell(step: Partial<PullStep>): void;
  finish(): void;
  fail(error: unknown): void;
}

function createFakes() {
  const clock = createManualClock();
  const pulls: FakePull[] = [];
  const catalog: ModelCatalog = {
    list: async () => [],
    open: () => Promise.reject(new RuvLLMError('not_found', 'none')),
    suggest: async () => ({ isHubReachable: true, models: [] }),
    freeBytes: () => 0,
    pull: (reference, { signal, onProgress }) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new RuvLLMError('aborted', 'cancelled')));
        pulls.push({
          reference,
          signal,
          tell: (step) => onProgress({ phase: 'download', item: 'a.gguf', doneBytes: 0, totalBytes: 100, ...step }),
          finish: () => resolve({ sizeBytes: 100, isDownloaded: true }),
          fail: reject,
        });
      }),
  };
  return { clock, pulls, jobs: createPullJobs(catalog, clock) };
}

test('[M7] a pull reports its progress, rate and result', async () => {
  const { clock, pulls, jobs } = createFakes();
  const { id } = jobs.start('a/b');
  expect(jobs.find(id)).toMatchObject({ state: 'running', step: null, bytesPerSecond: null, endedMs: null });
  pulls[0]!.tell({ doneBytes: 40 }); // resumed: downloaded before
  clock.advance(2000);
  pulls[0]!.tell({ doneBytes: 60 });
  expect(jobs.find(id)).toMatchObject({ bytesPerSecond: 10, step: { doneBytes: 60, totalBytes: 100 } });
  pulls[0]!.finish();
  await settle();
  expect(jobs.find(id)).toMatchObject({ state: 'done', error: null, endedMs: clock.wallClock() });
  const failing = jobs.start('c/d');
  pulls[1]!.fail(new RuvLLMError('disk_full', 'no space for 7 bytes'));
  await settle();
  expect(jobs.find(failing.id)).toMatchObject({
    state: 'failed',
    error: { code: 'disk_full', message: 'no space for 7 bytes' },
  });
  expect(jobs.list().map(({ reference }) => reference)).toEqual(['c/d', 'a/b']);
});

test('[M7] runs one pull per reference and two in total; a cancelled pull frees its slot', async () => {
  const { pulls, jobs } = createFakes();
  const first = jobs.start('a/b');
  expect(jobs.start('a/b').id).toBe(first.id);
  jobs.start('c/d');
  expect(() => jobs.start('e/f')).toThrow(
    expect.objectContaining({ data: expect.objectContaining({ httpStatus: 429 }) as object }),
  );
  expect(pulls).toHaveLength(2);
  expect(jobs.cancel('none')).toBeNull();
  expect(jobs.cancel(first.id)).toMatchObject({ id: first.id });
  await settle();
  expect(jobs.find(first.id)).toMatchObject({ state: 'cancelled', error: null });
  expect(jobs.start('a/b').id).not.toBe(first.id);
});

test('[M7] a watcher sees changes at a limited rate, and the end', async () => {
  const { clock, pulls, jobs } = createFakes();
  const { id } = jobs.start('a/b');
  const seen: PullJob[] = [];
  const watching = (async () => {
    for await (const job of jobs.watch(id, new AbortController().signal)) seen.push(job);
  })();
  await settle();
  for (let i = 1; i <= 50; i++) pulls[0]!.tell({ doneBytes: i });
  clock.advance(250);
  await settle();
  expect(seen.map(({ step }) => step?.doneBytes ?? null)).toEqual([null, 50]);
  clock.advance(250);
  await settle();
  expect(seen).toHaveLength(2); // no change
  pulls[0]!.finish();
  await settle();
  await watching;
  expect(seen.at(-1)).toMatchObject({ state: 'done' });
  const gone = new AbortController();
  const again = jobs.watch(jobs.start('c/d').id, gone.signal);
  await again.next();
  const next = again.next();
  gone.abort();
  await next;
  expect((await again.next()).done).toBe(true);
});

test('[M7] closing cancels running pulls; old pulls are dropped', async () => {
  const { pulls, jobs } = createFakes();
  for (let i = 0; i < 60; i++) {
    jobs.start(`a/b${i}`);
    pulls[i]!.finish();
    await settle();
  }
  expect(jobs.list().length).toBeLessThanOrEqual(50);
  const { id } = jobs.start('last/one');
  await jobs.close();
  expect(jobs.find(id)).toMatchObject({ state: 'cancelled' });
});
