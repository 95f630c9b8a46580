import { expect, test, vi } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import type { MemoryStore } from '../types.ts';
import { createObjectServer } from './remote-objects.ts';
import type { CallTransport, RemoteCall, RemoteReply } from '../../core/remote-calls.ts';
import { REMOTE_METHODS, type RemoteObjects } from './protocol.ts';
import { createRemoteObjects, MAX_PENDING } from './remote-objects.ts';

/** Both ends in one thread, with copies between them as between threads. */
function connect(store: Partial<MemoryStore>, others: Partial<RemoteObjects> = {}) {
  let onReply: (reply: RemoteReply) => void = () => {};
  let onEnd: (reason: string) => void = () => {};
  const objects = { archive: {}, embedder: {}, finder: {}, keys: {}, backups: {}, ...others, store } as RemoteObjects;
  const serve = createObjectServer(objects, (reply) => onReply(structuredClone(reply)));
  const end = vi.fn(async () => {});
  const busy: boolean[] = [];
  const transport: CallTransport = {
    post: (call: RemoteCall) => serve(structuredClone(call)),
    listen: (reply, ended) => {
      onReply = reply;
      onEnd = ended;
    },
    setBusy: (isBusy) => void busy.push(isBusy),
    end,
  };
  const { store: remote, ...rest } = createRemoteObjects(transport);
  return { remote, rest, kill: (reason: string) => onEnd(reason), end, busy };
}

test('calls every method of every object and returns its value', async () => {
  const echo = (object: keyof RemoteObjects): object =>
    Object.fromEntries(
      Object.keys(REMOTE_METHODS[object]).map((name) => [name, async (...args: unknown[]) => ({ object, name, args })]),
    );
  const { remote, rest } = connect(echo('store'), {
    archive: echo('archive') as never,
    embedder: echo('embedder') as never,
    finder: echo('finder') as never,
    keys: echo('keys') as never,
    backups: echo('backups') as never,
  });
  for (const [object, target] of Object.entries({ store: remote, ...rest })) {
    for (const [name, method] of Object.entries(target).filter(([one]) => one !== 'close')) {
      const value = await (method as (...args: unknown[]) => Promise<unknown>)('a', [1, null]);
      expect(value).toEqual({ object, name, args: ['a', [1, null]] });
    }
  }
});

test('the thread keeps the process alive only while calls wait', async () => {
  const { remote, busy } = connect({ count: async () => 1 });
  await Promise.all([remote.count('a', { kinds: [] }), remote.count('b', { kinds: [] })]);
  expect(busy).toEqual([true, false]);
});

test('answers find their calls in whatever order they come', async () => {
  const waiting: (() => void)[] = [];
  const count = vi.fn((tenant: string) => new Promise<number>((done) => waiting.push(() => done(tenant.length))));
  const { remote } = connect({ count });
  const results = ['a', 'bb', 'ccc'].map((tenant) => remote.count(tenant, { kinds: ['fact'] }));
  for (const answer of waiting.toReversed()) answer();
  expect(await Promise.all(results)).toEqual([1, 2, 3]);
});

test('a typed error keeps its code and numbers', async () => {
  const { remote } = connect({
    count: () => Promise.reject(new RuvLLMError('disk_full', 'full', { data: { freeBytes: 3 } })),
  });
  await expect(remote.count('a', { kinds: [] })).rejects.toMatchObject({ code: 'disk_full', data: { freeBytes: 3 } });
});

test('refuses values that cannot be transferred, and the next call works', async () => {
  const { remote } = connect({ count: async () => 7 });
  const bad = { kinds: [], filter: (() => {}) as never };
  await expect(remote.count('a', bad)).rejects.toMatchObject({ code: 'invalid_option' });
  expect(await remote.count('a', { kinds: [] })).toBe(7);
});

test('an answer that cannot be passed on is an error, not a silence', async () => {
  const { remote } = connect({ count: async () => (() => {}) as never });
  await expect(remote.count('a', { kinds: [] })).rejects.toMatchObject({ code: 'internal' });
});

test('fails waiting and later calls when the thread dies', async () => {
  const { remote, kill } = connect({ count: () => new Promise(() => {}) });
  const waiting = remote.count('a', { kinds: [] });
  kill('exit code 9');
  await expect(waiting).rejects.toMatchObject({ code: 'io', data: { reason: 'exit code 9' } });
  await expect(remote.count('a', { kinds: [] })).rejects.toMatchObject({ code: 'io' });
});

test('more calls than may wait are refused with the number', async () => {
  const { remote, kill } = connect({ count: () => new Promise(() => {}) });
  const waiting = Array.from({ length: MAX_PENDING }, () => remote.count('a', { kinds: [] }));
  await expect(remote.count('a', { kinds: [] })).rejects.toMatchObject({
    code: 'overloaded',
    data: { maxPending: MAX_PENDING },
  });
  kill('test');
  expect((await Promise.allSettled(waiting)).every(({ status }) => status === 'rejected')).toBe(true);
});

test('closing ends the thread once, and later calls are refused', async () => {
  const close = vi.fn(async () => {});
  const { remote, end } = connect({ close });
  await remote.close();
  await remote.close();
  expect([close.mock.calls.length, end.mock.calls.length]).toEqual([1, 1]);
  await expect(remote.count('a', { kinds: [] })).rejects.toMatchObject({ code: 'io' });
});
