import { expect, test, vi } from 'vitest';
import { RuvLLMError } from '../../../core/errors.ts';
import type { MemoryStore } from '../../types.ts';
import { STORE_METHODS, type StoreCall, type StoreReply } from './protocol.ts';
import { createRemoteStore, MAX_PENDING, type StoreTransport } from './remote-store.ts';
import { createStoreServer } from './store-server.ts';

/** Both ends in one thread, with copies between them as between threads. */
function connect(store: Partial<MemoryStore>) {
  let onReply: (reply: StoreReply) => void = () => {};
  let onEnd: (reason: string) => void = () => {};
  const serve = createStoreServer(store as MemoryStore, (reply) => onReply(structuredClone(reply)));
  const end = vi.fn(async () => {});
  const transport: StoreTransport = {
    post: (call: StoreCall) => serve(structuredClone(call)),
    listen: (reply, ended) => {
      onReply = reply;
      onEnd = ended;
    },
    end,
  };
  return { remote: createRemoteStore(transport), kill: (reason: string) => onEnd(reason), end };
}

test('every method reaches the store with its arguments and comes back with its value', async () => {
  const names = Object.keys(STORE_METHODS) as (keyof MemoryStore)[];
  const store = Object.fromEntries(names.map((name) => [name, async (...args: unknown[]) => ({ name, args })]));
  const { remote } = connect(store as unknown as Partial<MemoryStore>);
  for (const name of names.filter((one) => one !== 'close')) {
    const call = remote[name] as (...args: unknown[]) => Promise<unknown>;
    expect(await call('a', [1, null])).toEqual({ name, args: ['a', [1, null]] });
  }
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

test('what cannot be passed on is refused, and the next call works', async () => {
  const { remote } = connect({ count: async () => 7 });
  const bad = { kinds: [], filter: (() => {}) as never };
  await expect(remote.count('a', bad)).rejects.toMatchObject({ code: 'invalid_option' });
  expect(await remote.count('a', { kinds: [] })).toBe(7);
});

test('an answer that cannot be passed on is an error, not a silence', async () => {
  const { remote } = connect({ count: async () => (() => {}) as never });
  await expect(remote.count('a', { kinds: [] })).rejects.toMatchObject({ code: 'internal' });
});

test('a thread that dies fails what waits and what comes after', async () => {
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
