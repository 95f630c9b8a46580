import { expect, test } from 'vitest';
import { createFakeModels } from '../../../test/support/fake-models.ts';
import { settle } from '../../../test/support/manual-clock.ts';

test('[M8] models are loaded one at a time, in the order of their first request', async () => {
  const { acquire, finish, loads, host } = createFakeModels({ a: 1, b: 1, c: 1 });
  const all = [acquire('a'), acquire('c'), acquire('b'), acquire('c')];
  await settle();
  expect(loads).toEqual(['a']);
  expect(host.list().map(({ state }) => state)).toEqual(['loading', 'loading', 'loading']);
  await finish('a');
  expect(loads).toEqual(['a', 'c']);
  await finish('c');
  await finish('b');
  expect((await Promise.all(all)).map(({ id }) => id)).toEqual(['a', 'c', 'b', 'c']);
  expect(loads).toEqual(['a', 'c', 'b']);
});

test('[M8] a small model does not overtake a large one that waits for room', async () => {
  const { acquire, finish, loads } = createFakeModels({ a: 80, large: 80, small: 10 }, { budgetBytes: 100 });
  const a = acquire('a');
  await finish('a');
  const lease = await a;
  const large = acquire('large');
  await settle();
  const small = acquire('small');
  await settle();
  expect(loads).toEqual(['a']);
  lease.release();
  await finish('large');
  await finish('small');
  await Promise.all([large, small]);
  expect(loads).toEqual(['a', 'large', 'small']);
});

test('[M8] a client that leaves frees its place; its model is not loaded', async () => {
  const { host, acquire, finish, loads } = createFakeModels({ a: 1, b: 1, c: 1 });
  const a = acquire('a');
  const leaving = new AbortController();
  const b = acquire('b', 1000, leaving.signal);
  const c = acquire('c');
  await settle();
  leaving.abort();
  await expect(b).rejects.toMatchObject({ code: 'aborted' });
  expect(host.find('b')).toMatchObject({ state: 'unloaded', numUsers: 0 });
  await finish('a');
  await finish('c');
  await Promise.all([a, c]);
  expect(loads).toEqual(['a', 'c']);
  const again = acquire('b');
  await finish('b');
  (await again).release();
  expect(loads).toEqual(['a', 'c', 'b']);
});

test('[M8] one of two clients that leaves does not take the place of the other', async () => {
  const { acquire, finish, loads } = createFakeModels({ a: 1, b: 1, c: 1 });
  const a = acquire('a');
  const leaving = new AbortController();
  const left = acquire('b', 1000, leaving.signal);
  const others = [acquire('b'), acquire('c')];
  await settle();
  leaving.abort();
  await expect(left).rejects.toMatchObject({ code: 'aborted' });
  await finish('a');
  expect(loads).toEqual(['a', 'b']);
  await finish('b');
  await finish('c');
  await Promise.all([a, ...others]);
});

test('[M8] a model whose requests have ended is loaded after those with requests', async () => {
  const { clock, acquire, finish, loads } = createFakeModels({ a: 80, b: 80, c: 80 }, { budgetBytes: 100 });
  const a = acquire('a', 1e6);
  await finish('a');
  const lease = await a;
  const late = acquire('b', 500);
  await settle();
  clock.advance(500);
  await expect(late).rejects.toMatchObject({ code: 'overloaded' });
  const c = acquire('c', 1e6);
  await settle();
  lease.release();
  await finish('c');
  (await c).release();
  await settle();
  expect(loads).toEqual(['a', 'c', 'b']);
});

test('[M8] a model whose engine was lost makes room although requests wait for it', async () => {
  const { acquire, finish, models, loads } = createFakeModels({ a: 80, b: 80 }, { budgetBytes: 100 });
  const a = acquire('a');
  await finish('a');
  const lost = await a; // never released
  models.get('a')!.isAlive = false;
  const b = acquire('b');
  const again = acquire('a');
  await finish('b');
  (await b).release();
  await finish('a');
  expect((await again).model).not.toBe(lost.model);
  expect(loads).toEqual(['a', 'b', 'a']);
});

test('[M9] a pinned model is never unloaded for others', async () => {
  const more = { pinned: { isPinned: true, idleUnloadMs: 10 } };
  const { host, clock, use, acquire, disposed } = createFakeModels(
    { pinned: 40, b: 40, c: 40, d: 70 },
    { budgetBytes: 100, more },
  );
  await use('pinned');
  await use('b');
  await use('c');
  expect(disposed).toEqual(['b']);
  await expect(acquire('d')).rejects.toMatchObject({
    code: 'out_of_memory',
    message: 'model d takes 70 bytes, the budget for models is 100, of which pinned models hold 40',
  });
  await host.keepFor('pinned', 10);
  clock.advance(1000);
  await settle();
  expect(host.find('pinned')).toMatchObject({ state: 'loaded', isPinned: true, expiresMs: null });
  // Only an explicit wish unloads it.
  await host.keepFor('pinned', 0);
  expect(host.find('pinned')).toMatchObject({ state: 'unloaded' });
});

test('[M10] an idle model is unloaded after its time; each request starts it anew', async () => {
  const { host, clock, use, acquire, disposed } = createFakeModels({ a: 1 }, { more: { a: { idleUnloadMs: 1000 } } });
  await use('a');
  const firstExpiryMs = host.find('a')!.expiresMs!;
  expect(firstExpiryMs).toBe(clock.wallClock() + 1000);
  clock.advance(999);
  const lease = await acquire('a');
  expect(host.find('a')!.expiresMs).toBeNull();
  clock.advance(5000);
  await settle();
  expect(disposed).toEqual([]); // in use
  lease.release();
  clock.advance(999);
  await settle();
  expect(disposed).toEqual([]);
  clock.advance(1);
  await settle();
  expect(disposed).toEqual(['a']);
  expect(host.find('a')).toMatchObject({ state: 'unloaded', expiresMs: null });
});

test('[M10] a time that a request asked for counts until the model is unloaded', async () => {
  const { host, clock, use, acquire, disposed } = createFakeModels({ a: 1 }, { more: { a: { idleUnloadMs: 1000 } } });
  await use('a');
  await host.keepFor('a', null);
  clock.advance(10_000);
  await settle();
  expect(disposed).toEqual([]);
  await host.keepFor('a', 50);
  clock.advance(50);
  await settle();
  expect(disposed).toEqual(['a']);
  await use('a');
  expect(host.find('a')!.expiresMs).toBe(clock.wallClock() + 1000);
  const lease = await acquire('a');
  await host.keepFor('a', 0); // in use: as soon as it is idle
  expect(disposed).toEqual(['a']);
  lease.release();
  clock.advance(0);
  await settle();
  expect(disposed).toEqual(['a', 'a']);
  await host.keepFor('a', 0);
  await use('a');
  expect(host.find('a')).toMatchObject({ state: 'loaded' });
});

test('[M10] a request that comes while an idle model is unloaded waits and loads it again', async () => {
  const { clock, use, acquire, finish, loads } = createFakeModels({ a: 1 }, { more: { a: { idleUnloadMs: 1000 } } });
  await use('a');
  clock.advance(1000);
  const again = acquire('a');
  await finish('a');
  expect((await again).model.isLoaded()).toBe(true);
  expect(loads).toEqual(['a', 'a']);
});

test('[M10] a load that no request waits for any more becomes idle, too', async () => {
  const { clock, acquire, finish, disposed } = createFakeModels({ a: 1 }, { more: { a: { idleUnloadMs: 1000 } } });
  await expect(acquire('a', 0)).rejects.toMatchObject({ code: 'overloaded' });
  await finish('a');
  clock.advance(1000);
  await settle();
  expect(disposed).toEqual(['a']);
});

test('[M11] at most as many models of a group are loaded as its limit allows', async () => {
  const more = { a: { group: 'large' }, b: { group: 'large' }, c: { group: 'large' } };
  const { host, use, acquire, finish, disposed, loads } = createFakeModels(
    { a: 1, b: 1, c: 1, other: 1 },
    { groups: { large: 2 }, more },
  );
  await use('other');
  await use('a');
  await use('b');
  expect(disposed).toEqual([]);
  await use('c');
  expect(disposed).toEqual(['a']); // not `other`, which was used before
  const [b, c] = [await acquire('b'), await acquire('c')];
  const a = acquire('a');
  await settle();
  expect(loads).toEqual(['other', 'a', 'b', 'c']);
  c.release();
  await finish('a');
  (await a).release();
  b.release();
  expect(host.list().filter(({ state }) => state === 'loaded').map(({ id }) => id)).toEqual(['a', 'b', 'other']); // prettier-ignore
});

test('[M11] a group whose pinned models leave no room for the others is rejected', () => {
  const pinned = { group: 'large', isPinned: true };
  const create = (more: Record<string, object>) => createFakeModels({ a: 1, b: 1 }, { groups: { large: 1 }, more });
  expect(() => create({ a: pinned, b: { group: 'large' } })).toThrow(
    'group "large" holds at most 1 loaded models; 1 of its 2 models are pinned',
  );
  expect(() => create({ a: pinned, b: pinned })).toThrow('2 of its 2 models are pinned');
  expect(() => create({ a: pinned })).not.toThrow();
});
