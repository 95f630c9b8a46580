import { expect, test } from 'vitest';
import { linkAbort } from './abort.ts';

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
