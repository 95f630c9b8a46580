import { expect, test } from 'vitest';
import { createOnDemand } from './on-demand.ts';

function setUp() {
  const log: string[] = [];
  let planned: (() => void) | null = null;
  let numOpened = 0;
  let failure: Error | null = null;
  const thing = createOnDemand<number>({
    async open() {
      log.push('open');
      if (failure !== null) throw failure;
      return ++numOpened;
    },
    async end(which) {
      log.push(`end ${which}`);
    },
    idleMs: 5,
    schedule(task) {
      planned = task;
      return () => void (planned = null);
    },
  });
  return {
    ...thing,
    log,
    fail: (error: Error | null) => void (failure = error),
    passIdleTime: () => {
      const task = planned;
      planned = null;
      task?.();
    },
  };
}

test('it opens with the first use, ends after the idle time and opens again', async () => {
  const { use, isOpen, log, passIdleTime } = setUp();
  expect(isOpen()).toBe(false);
  expect(await Promise.all([use(async (n) => n), use(async (n) => n)])).toEqual([1, 1]);
  expect([isOpen(), log]).toEqual([true, ['open']]);
  passIdleTime();
  expect(isOpen()).toBe(false);
  expect(await use(async (n) => n)).toBe(2);
  expect(log).toEqual(['open', 'end 1', 'open']);
});

test('work is never cut, and the idle time begins after the last', async () => {
  const { use, log, passIdleTime } = setUp();
  let finish = (): void => {};
  const long = use(() => new Promise<void>((resolve) => (finish = resolve)));
  await use(async () => {});
  passIdleTime();
  expect(log).toEqual(['open']);
  finish();
  await long;
  passIdleTime();
  await Promise.resolve();
  expect(log).toEqual(['open', 'end 1']);
});

test('a failed opening fails its uses only; an end in use is a caller that closes', async () => {
  const { use, end, log, fail, isOpen } = setUp();
  fail(new Error('no file'));
  const failed = await Promise.allSettled([use(async (n) => n), use(async (n) => n)]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  fail(null);
  expect(await use(async (n) => n)).toBe(1);
  await end();
  expect([isOpen(), log]).toEqual([false, ['open', 'open', 'end 1']]);
});
