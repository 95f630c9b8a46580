import { expect, test, vi } from 'vitest';
import { linkAbort, onAbort } from './abort.ts';

test('a parent aborts its children with its reason, and children do not abort their parent', () => {
  const parent = new AbortController();
  const child = linkAbort(parent.signal);
  const other = linkAbort(parent.signal);
  other.abort();
  expect([parent.signal.aborted, child.signal.aborted, other.signal.aborted]).toEqual([false, false, true]);
  parent.abort('left');
  expect(child.signal.reason).toBe('left');
  expect(linkAbort(parent.signal).signal.reason).toBe('left');
});

test('ending a job creates no exception: all share one reason', () => {
  const [a, b] = [linkAbort(new AbortController().signal), linkAbort(new AbortController().signal)];
  a.abort();
  b.abort();
  expect(a.signal.reason).toMatchObject({ code: 'aborted' });
  expect(a.signal.reason).toBe(b.signal.reason);
});

test('an unlinked child is not aborted by its parent', () => {
  const parent = new AbortController();
  const child = linkAbort(parent.signal);
  child.unlink();
  parent.abort();
  expect(child.signal.aborted).toBe(false);
});

test('a hundred callbacks of a signal are one listener, and none when they have unsubscribed', () => {
  const { signal } = new AbortController();
  const added = vi.spyOn(signal, 'addEventListener');
  const removed = vi.spyOn(signal, 'removeEventListener');
  const children = Array.from({ length: 100 }, () => linkAbort(signal));
  expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 0]);
  for (const { unlink } of children) unlink();
  expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
  linkAbort(signal);
  expect(added.mock.calls.length).toBe(2);
});

test('each callback runs once when the signal aborts, unless it was unsubscribed, and at once after that', () => {
  const controller = new AbortController();
  const calls: string[] = [];
  onAbort(controller.signal, () => {
    calls.push('first');
    forgetThird();
  });
  const forgetSecond = onAbort(controller.signal, () => calls.push('second'));
  const forgetThird = onAbort(controller.signal, () => calls.push('third'));
  forgetSecond();
  controller.abort();
  onAbort(controller.signal, () => calls.push('late'));
  expect(calls).toEqual(['first', 'late']);
});
