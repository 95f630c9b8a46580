import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { createTaskThread, type TaskThreadOptions } from './task-thread.ts';

/** Of computing: only a task that hangs meets it, however busy the machine is. */
const DEADLINE_MS = 2000;

/** A thread that does what its task says, and counts its starts and tasks. */
function createStub(options: Partial<TaskThreadOptions> = {}, first = 'ready') {
  const log: string[] = [];
  const program = `
    const { parentPort } = require('node:worker_threads');
    parentPort.on('message', (task) => {
      if (task === 'hang') for (;;);
      if (task === 'exit') process.exit(3);
      if (task === 'throw') throw new Error('lost');
      if (task === 'refuse') parentPort.postMessage({ error: { code: 'invalid_text', message: 'no', data: { index: 4 }, isRetryable: false } });
      else parentPort.postMessage({ result: task.toUpperCase() });
    });
    ${first === 'throw' ? "throw new Error('no start')" : `parentPort.postMessage('${first}')`};`;
  const thread = createTaskThread<string, string>({
    name: 'the thread',
    spawn: () => {
      log.push('start');
      const worker = new Worker(program, { eval: true });
      const post = worker.postMessage.bind(worker);
      worker.postMessage = (task: string) => {
        log.push(String(task));
        post(task);
      };
      return worker;
    },
    deadlineMs: DEADLINE_MS,
    maxWaiting: 8,
    idleMs: 10_000,
    ...options,
  });
  return { ...thread, log };
}

test('[TX3] a task that takes too long, or its thread down, fails alone with a typed error; the next works', async () => {
  const { run, log, dispose } = createStub();
  const tasks = ['a', 'hang', 'b', 'exit', 'c', 'throw', 'refuse', 'd'];
  const results = await Promise.allSettled(tasks.map((task) => run(task, null)));
  expect(
    results.map((one) => (one.status === 'fulfilled' ? one.value : `${one.reason.code}: ${one.reason.message}`)),
  ).toEqual([
    'A',
    `deadline_exceeded: the thread exceeded the limit of ${DEADLINE_MS} ms for a task`,
    'B',
    'internal: the thread exited with code 3',
    'C',
    'internal: the thread failed: lost',
    'invalid_text: no',
    'D',
  ]);
  expect((results[1] as PromiseRejectedResult).reason.data).toEqual({ limit: DEADLINE_MS });
  expect((results[6] as PromiseRejectedResult).reason.data).toEqual({ index: 4 });
  expect(log.filter((line) => line === 'start')).toHaveLength(4);
  await dispose();
});

test('[TX4] who leaves is not waited for, waiting or at work; no more than so many wait', async () => {
  const { run, log, dispose } = createStub({ maxWaiting: 2 });
  const [atWork, waiting] = [new AbortController(), new AbortController()];
  const first = run('a', atWork.signal);
  const second = run('b', waiting.signal);
  const third = run('c', null);
  await expect(run('d', null)).rejects.toMatchObject({ code: 'overloaded', data: { limit: 2 }, isRetryable: true });
  atWork.abort();
  waiting.abort();
  await expect(first).rejects.toMatchObject({ code: 'aborted' });
  await expect(second).rejects.toMatchObject({ code: 'aborted' });
  await expect(run('e', AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' });
  expect(await third).toBe('C');
  expect(log).toEqual(['start', 'a', 'c']);
  await dispose();
});

test('[TX5] without a thread nothing fails: it does not start, says it is unable, or the task is no data', async () => {
  const broken = createStub({}, 'throw');
  expect(await Promise.all([broken.run('a', null), broken.run('b', null)])).toEqual([null, null]);
  expect(broken.log).toEqual(['start', 'start']);
  const unable = createStub({}, 'unable');
  expect(await Promise.all([unable.run('a', null), unable.run('b', null)])).toEqual([null, null]);
  expect(await unable.run('c', null)).toBeNull();
  expect(unable.log).toEqual(['start']);
  const good = createStub();
  expect(await good.run((() => {}) as never, null)).toBeNull();
  expect(await good.run('a', null)).toBe('A');
  await good.dispose();
});

test('[TX6] the thread goes when it has nothing to do and comes back; with its model it goes for good', async () => {
  const { run, log, dispose } = createStub({ idleMs: 1 });
  await run('a', null);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await run('a', null);
  expect(log.filter((line) => line === 'start')).toHaveLength(2);
  const left = Promise.allSettled([run('hang', null), run('b', null)]);
  await dispose();
  for (const one of await left) expect(one).toMatchObject({ reason: { code: 'not_loaded' } });
  await expect(run('c', null)).rejects.toMatchObject({ code: 'not_loaded' });
});

test('[TX7] owners take turns, however many tasks one of them has; each has a limit of its own', async () => {
  const { run, log, dispose } = createStub({ maxWaiting: 3 });
  const tasks = ['a', 'b', 'c', 'd'].map((task) => run(task, null, 'greedy'));
  await expect(run('e', null, 'greedy')).rejects.toMatchObject({ code: 'overloaded', data: { limit: 3 } });
  tasks.push(run('x', null, 'modest'), run('y', null, 'modest'), run('z', null, 'other'));
  await Promise.all(tasks);
  expect(log).toEqual(['start', 'a', 'b', 'x', 'z', 'c', 'y', 'd']);
  await dispose();
});
