import { expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import { createChunkQueue } from './chunk-queue.ts';

test('values come out in order, pushed before or while reading', async () => {
  const queue = createChunkQueue<number>();
  queue.push(1);
  queue.push(2);
  const reader = queue.read();
  expect(await reader.next()).toEqual({ done: false, value: 1 });
  expect(await reader.next()).toEqual({ done: false, value: 2 });
  const third = reader.next();
  queue.push(3);
  expect(await third).toEqual({ done: false, value: 3 });
  const end = reader.next();
  queue.end();
  expect(await end).toEqual({ done: true, value: undefined });
});

test('a failure comes after the values before it; what follows is ignored', async () => {
  const queue = createChunkQueue<number>();
  queue.push(1);
  queue.fail(new RuvLLMError('aborted', 'first'));
  queue.fail(new RuvLLMError('internal', 'second'));
  queue.end();
  queue.push(2);
  const reader = queue.read();
  expect(await reader.next()).toEqual({ done: false, value: 1 });
  await expect(reader.next()).rejects.toMatchObject({ code: 'aborted', message: 'first' });
});
