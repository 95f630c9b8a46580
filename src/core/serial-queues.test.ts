import { expect, test } from 'vitest';
import { createSerialQueue, createSerialQueues } from './serial-queues.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('tasks with one key run in order, one at a time, without delaying other keys', async () => {
  const { run } = createSerialQueues();
  const log: string[] = [];
  const task = (name: string, numTurns: number) => async () => {
    log.push(`${name} starts`);
    for (let i = 0; i < numTurns; i++) await turn();
    log.push(`${name} ends`);
    return name;
  };
  const all = [run('a', task('a1', 5)), run('a', task('a2', 0)), run('b', task('b1', 1))];
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'b1']);
  expect(log).toEqual(['a1 starts', 'b1 starts', 'b1 ends', 'a1 ends', 'a2 starts', 'a2 ends']);
});

test('a task that rejects or throws does not stop the next', async () => {
  const run = createSerialQueue();
  const failed = run(() => Promise.reject(new Error('one')));
  const thrown = run(() => {
    throw new Error('two');
  });
  const last = run(async () => 'three');
  await expect(failed).rejects.toThrow('one');
  await expect(thrown).rejects.toThrow('two');
  expect(await last).toBe('three');
});

test('keys without tasks are removed, and settle waits for all tasks', async () => {
  const queues = createSerialQueues();
  let numDone = 0;
  for (const key of ['a', 'b', 'b']) {
    const task = async (): Promise<void> => {
      await turn();
      numDone++;
      if (key === 'a') throw new Error('failed');
    };
    queues.run(key, task).catch(() => {});
  }
  expect(queues.size).toBe(2);
  await queues.settle();
  expect(numDone).toBe(3);
  await turn();
  expect(queues.size).toBe(0);
});
