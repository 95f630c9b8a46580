import { expect, test } from 'vitest';
import { createFakeModels } from '../../../test/support/fake-models.ts';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { entryOf } from '../../../test/support/test-server.ts';
import type { ErasureSubject } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../model.ts';
import { createModelHost, type ModelEntry } from './model-host.ts';

const SIGNAL = new AbortController().signal;

test('[M1] one load for everyone who asks, by id or alias', async () => {
  const { host, acquire, finish, loads } = createFakeModels({ a: 1 });
  expect(host.find('a')).toMatchObject({ state: 'unloaded', model: null });
  const both = Promise.all([acquire('a'), acquire('a-alias')]);
  await settle();
  expect(host.find('a-alias')).toMatchObject({ id: 'a', state: 'loading', numUsers: 2 });
  await finish('a');
  const [first, second] = await both;
  expect(first!.model).toBe(second!.model);
  expect(first!.id).toBe('a');
  expect(loads).toEqual(['a']);
  first!.release();
  first!.release();
  expect(host.find('a')).toMatchObject({ state: 'loaded', numUsers: 1 });
});

test('an unknown model is a 404 that names it', async () => {
  const { acquire } = createFakeModels({ a: 1 });
  await expect(acquire('b')).rejects.toMatchObject({
    message: 'the model "b" does not exist here',
    code: 'model_not_found',
    data: { option: 'model' },
  });
});

test('[M1] a failed load fails all waiting requests, and the next request tries again', async () => {
  const { host, acquire, pending, finish, loads } = createFakeModels({ a: 1 });
  const failing = acquire('a');
  await settle();
  pending.pop()!.reject(new RuvLLMError('io', 'no such file'));
  await expect(failing).rejects.toMatchObject({ code: 'io' });
  expect(host.find('a')).toMatchObject({ state: 'failed', error: 'no such file', numUsers: 0 });
  const again = acquire('a');
  await finish('a');
  (await again).release();
  expect(loads).toEqual(['a', 'a']);
  expect(host.find('a')).toMatchObject({ state: 'loaded', error: null });
});

test('[M2] the one not used for longest makes place, one in use does not', async () => {
  const { acquire, finish, disposed, loads } = createFakeModels({ a: 40, b: 40, c: 40 }, { budgetBytes: 100 });
  const [a, b] = [acquire('a'), acquire('b')];
  await finish('a');
  await finish('b');
  const leaseA = await a;
  const leaseB = await b;
  leaseB.release();
  leaseA.release(); // a was used last
  const c = acquire('c');
  await finish('c');
  await c;
  expect(disposed).toEqual(['b']);
  const againA = await acquire('a');
  const waiting = acquire('b');
  await settle();
  expect(disposed).toEqual(['b']); // a and c are in use
  expect(loads).toEqual(['a', 'b', 'c']);
  againA.release();
  await finish('b');
  await waiting;
  expect(disposed).toEqual(['b', 'a']);
});

test('[M2] two that wait for the same place get it one after the other', async () => {
  const { acquire, finish, loads, disposed } = createFakeModels({ a: 80, b: 80 }, { budgetBytes: 100 });
  const a = acquire('a');
  const b = acquire('b');
  await finish('a');
  const leaseA = await a;
  await settle();
  expect(loads).toEqual(['a']);
  leaseA.release();
  await finish('b');
  (await b).release();
  expect(disposed).toEqual(['a']);
});

test('a model larger than the budget is refused with both numbers', async () => {
  const { acquire } = createFakeModels({ a: 101 }, { budgetBytes: 100 });
  await expect(acquire('a')).rejects.toMatchObject({
    code: 'out_of_memory',
    message: 'model a takes 101 bytes, the budget for models is 100',
  });
});

test('[M3] a request that waits too long fails; the load continues for the next', async () => {
  const { clock, acquire, finish, loads } = createFakeModels({ a: 1 });
  const late = acquire('a', 500);
  await settle();
  clock.advance(500);
  await expect(late).rejects.toMatchObject({ code: 'overloaded', isRetryable: true, data: { waitMs: 500 } });
  await expect(acquire('a', 0)).rejects.toMatchObject({ code: 'overloaded' });
  await finish('a');
  await acquire('a', 0);
  expect(loads).toEqual(['a']);
});

test('a client that leaves stops waiting', async () => {
  const { host, acquire } = createFakeModels({ a: 1 });
  const controller = new AbortController();
  const leaving = acquire('a', 1000, controller.signal);
  await settle();
  controller.abort();
  await expect(leaving).rejects.toMatchObject({ code: 'aborted' });
  expect(host.find('a')!.numUsers).toBe(0);
});

test('[M4] a model whose engine was lost is loaded again', async () => {
  const { host, acquire, finish, models, loads } = createFakeModels({ a: 1 });
  const first = acquire('a');
  await finish('a');
  (await first).release();
  models.get('a')!.isAlive = false;
  expect(host.find('a')).toMatchObject({ state: 'unloaded', model: null });
  const again = acquire('a');
  await finish('a');
  expect((await again).model).toBe(models.get('a')!.model);
  expect(loads).toEqual(['a', 'a']);
});

test('[M12] a model whose engine stalled is loaded again without a request', async () => {
  const { host, models, loads, use, finish } = createFakeModels({ a: 1 });
  await use('a');
  const fake = models.get('a')!;
  fake.isAlive = false;
  fake.lose(new RuvLLMError('engine_stalled', 'no step'));
  await settle();
  expect(host.find('a')).toMatchObject({ state: 'loading', loss: 'stalled', numLosses: 1 });
  await finish('a');
  expect(host.find('a')).toMatchObject({ state: 'loaded', loss: null });
  expect(loads).toEqual(['a', 'a']);
});

test('[M13] an engine process that crashes at once again and again is replaced after longer and longer delays', async () => {
  const { host, models, loads, use, finish, clock } = createFakeModels({ a: 1 });
  await use('a');
  const crash = async (): Promise<void> => {
    models.get('a')!.isAlive = false;
    models.get('a')!.lose(new RuvLLMError('engine_crashed', 'SIGSEGV'));
    await settle();
  };
  await crash();
  expect(loads).toHaveLength(2); // the first time at once
  await finish('a');
  for (const [index, delayMs] of [500, 1000, 2000].entries()) {
    await crash();
    expect(host.find('a')).toMatchObject({ state: 'loading', loss: 'crashed', numLosses: index + 2 });
    clock.advance(delayMs - 1);
    expect(loads).toHaveLength(index + 2);
    clock.advance(1);
    await settle();
    expect(loads).toHaveLength(index + 3);
    await finish('a');
  }
  clock.advance(60_000);
  await crash();
  expect(loads).toHaveLength(6); // it had run for a minute
  await finish('a');
  expect(host.find('a')).toMatchObject({ state: 'loaded', loss: null, numLosses: 5 });
});

test('[M13] a crash while a replacement loads is followed by another one', async () => {
  const { host, models, loads, use, finish, pending, clock } = createFakeModels({ a: 1 });
  await use('a');
  models.get('a')!.isAlive = false;
  models.get('a')!.lose(new RuvLLMError('engine_crashed', 'SIGSEGV'));
  await settle();
  pending.shift()!.reject(new RuvLLMError('engine_crashed', 'SIGILL'));
  await settle();
  expect(host.find('a')).toMatchObject({ loss: 'crashed' });
  clock.advance(499);
  await settle();
  expect(loads).toHaveLength(2); // a replacement that did not even load was lost early, too
  clock.advance(1);
  await settle();
  expect(loads).toHaveLength(3);
  await finish('a');
  expect(host.find('a')).toMatchObject({ state: 'loaded', loss: null });
});

test('[M12] a model whose engine crashed waits for a request', async () => {
  const { host, models, loads, use } = createFakeModels({ a: 1 });
  await use('a');
  models.get('a')!.isAlive = false;
  models.get('a')!.lose(new RuvLLMError('kernel_failed', 'crash'));
  await settle();
  expect(host.find('a')).toMatchObject({ state: 'unloaded', loss: null });
  expect(loads).toEqual(['a']);
});

test('[E1] dispose unloads all models and fails requests waiting for memory', async () => {
  const { host, acquire, finish, disposed } = createFakeModels({ a: 80, b: 80 }, { budgetBytes: 100 });
  const a = acquire('a');
  await finish('a');
  await a;
  const b = acquire('b');
  b.catch(() => {});
  await settle();
  await host.dispose();
  await expect(b).rejects.toMatchObject({ code: 'overloaded', message: 'the server is shutting down' });
  await expect(acquire('a')).rejects.toMatchObject({ code: 'overloaded' });
  expect(disposed).toEqual(['a']);
});

const GENTLY = { force: false, drainMs: 1000 };
const FORCED = { force: true, drainMs: 1000 };

test('[M5] an idle model is unloaded, and loaded again by the next request', async () => {
  const { host, acquire, finish, disposed, loads } = createFakeModels({ a: 40, b: 40 }, { budgetBytes: 100 });
  const loading = acquire('a');
  await settle();
  await expect(host.unload('a', FORCED)).rejects.toMatchObject({
    code: 'conflict',
    message: 'model a is being loaded',
  });
  await finish('a');
  const lease = await loading;
  await expect(host.unload('a', GENTLY)).rejects.toMatchObject({ code: 'conflict', data: { id: 'a', numUsers: 1 } });
  expect(disposed).toEqual([]);
  lease.release();
  expect(host.memory).toEqual({ budgetBytes: 100, usedBytes: 40 });
  expect(await host.unload('a-alias', GENTLY)).toMatchObject({ id: 'a', state: 'unloaded', heldBytes: 0 });
  expect(disposed).toEqual(['a']);
  expect(host.memory.usedBytes).toBe(0);
  expect(await host.unload('a', GENTLY)).toMatchObject({ state: 'unloaded' });
  const again = acquire('a');
  await finish('a');
  (await again).release();
  expect(loads).toEqual(['a', 'a']);
  await expect(host.unload('none', GENTLY)).rejects.toMatchObject({ code: 'model_not_found' });
});

test('[M5] a forced unload rejects new requests and waits for running ones until the deadline', async () => {
  const { host, clock, acquire, finish, disposed } = createFakeModels({ a: 40 });
  const first = acquire('a');
  await finish('a');
  const lease = await first;
  const quick = host.unload('a', FORCED);
  await settle();
  expect(host.find('a')).toMatchObject({ state: 'unloading', numUsers: 1 });
  await expect(acquire('a')).rejects.toMatchObject({ code: 'overloaded', isRetryable: true });
  expect(disposed).toEqual([]);
  lease.release();
  expect(await quick).toMatchObject({ state: 'unloaded' });
  expect(disposed).toEqual(['a']);

  const second = acquire('a');
  await finish('a');
  const slow = await second;
  const late = host.unload('a', FORCED);
  await settle();
  clock.advance(999);
  await settle();
  expect(disposed).toEqual(['a']);
  clock.advance(1);
  expect(await late).toMatchObject({ state: 'unloaded', numUsers: 1 });
  expect(disposed).toEqual(['a', 'a']);
  slow.release();
  const third = acquire('a');
  await finish('a');
  expect((await third).model.isLoaded()).toBe(true);
});

test('[M5] an unload frees memory for a waiting request', async () => {
  const { host, clock, acquire, finish, loads } = createFakeModels({ a: 80, b: 80 }, { budgetBytes: 100 });
  const a = acquire('a', 1e6);
  await finish('a');
  await a; // never released
  const b = acquire('b', 1e6);
  await settle();
  expect(loads).toEqual(['a']);
  const unloading = host.unload('a', { force: true, drainMs: 10 });
  await settle();
  clock.advance(10);
  await unloading;
  await finish('b');
  (await b).release();
  expect(loads).toEqual(['a', 'b']);
});

test('[M6] models are added and removed while the server runs; those it was started with stay', async () => {
  const { host, acquire } = createFakeModels({ a: 40 });
  const model = {
    modelInfo: () => ({ memory: { totalBytes: 7 } }),
    isLoaded: () => true,
    onLost() {},
    async dispose() {},
  };
  const loadIt = async (): Promise<Model> => model as unknown as Model;
  const entry = entryOf('new', loadIt, { aliases: ['n'], sizeBytes: 7 });
  expect(host.add(entry)).toMatchObject({ id: 'new', isAdded: true, state: 'unloaded' });
  for (const taken of [
    entryOf('new', loadIt),
    entryOf('other', loadIt, { aliases: ['a-alias'] }),
    entryOf('twice', loadIt, { aliases: ['twice'] }),
  ]) {
    expect(() => host.add(taken)).toThrow(expect.objectContaining({ code: 'conflict' }));
  }
  expect(host.list().map(({ id }) => id)).toEqual(['a', 'new']);
  const lease = await acquire('n');
  await expect(host.remove('new', GENTLY)).rejects.toMatchObject({ code: 'conflict' });
  lease.release();
  await host.remove('new', GENTLY);
  expect(host.find('new')).toBeNull();
  expect(host.find('n')).toBeNull();
  await expect(host.remove('a', FORCED)).rejects.toMatchObject({ code: 'conflict' });
  for (let i = 0; i < 64; i++) host.add(entryOf(`m${i}`, loadIt));
  expect(() => host.add(entryOf('m64', loadIt))).toThrow('64 models were added');
});

test('a host knows whether it has loaded a model, and what its models hold for a tenant', async () => {
  const subject = { tenant: 'acme' } as ErasureSubject;
  const { host, models, use } = createFakeModels({ a: 1, b: 1, c: 1 });
  expect([host.hasLoaded, host.numUsers, await host.erasure.count(subject)]).toEqual([false, 0, 0]);
  await use('a');
  await use('b');
  expect([host.hasLoaded, host.erasure.isLast]).toEqual([true, true]);
  const erased: string[] = [];
  for (const [id, { model }] of models) {
    Object.assign(model, {
      erasure: { erase: async ({ tenant }: ErasureSubject) => erased.push(`${id} of ${tenant}`), count: async () => 3 },
    });
  }
  expect(await host.erasure.count(subject)).toBe(6);
  await host.erasure.erase(subject);
  expect(erased).toEqual(['a of acme', 'b of acme']);
});

test('an adapter behind the name of a model is known once the model is loaded', async () => {
  const adapters = [
    { name: 'legal', tenant: null },
    { name: 'own', tenant: 'acme' },
  ];
  const { host, use, acquire, finish } = createFakeModels({ a: 1, 'a:b': 1 }, { adapters });
  expect(host.find('a:legal')).toMatchObject({ id: 'a' }); // its adapters are not known yet
  expect([host.find(':legal'), host.find('legal'), host.find('c:legal')]).toEqual([null, null, null]);
  const unknown = acquire('a:none');
  const refused = expect(unknown).rejects.toMatchObject({ code: 'model_not_found' });
  await finish('a');
  await refused;
  expect(host.find('a')!.numUsers).toBe(0);
  expect(host.find('a:legal')).toMatchObject({ id: 'a' });
  expect([host.find('a:none'), host.find('a:own'), host.find('a:own', 'other')]).toEqual([null, null, null]);
  expect(host.find('a:own', 'acme')).toMatchObject({ id: 'a' });
  const lease = await acquire('a:legal');
  expect([lease.id, lease.adapter]).toEqual(['a', 'legal']);
  expect((await host.acquire('a:own', { signal: SIGNAL, waitMs: 0, tenant: 'acme' })).adapter).toBe('own');
  await expect(acquire('a:none')).rejects.toMatchObject({ code: 'model_not_found', message: 'the model "a:none" does not exist here' }); // prettier-ignore
  await use('a:b');
  expect((await acquire('a:b')).adapter).toBeNull(); // all of it is the name of a model
  expect(host.numUsers).toBe(3);
});

test('names of the models it is started with are unique', () => {
  const load = (): Promise<Model> => Promise.reject(new Error());
  const create = (...entries: readonly ModelEntry[]) =>
    createModelHost({ entries, budgetBytes: null, clock: createManualClock() });
  expect(() => create(entryOf('a', load), entryOf('b', load, { aliases: ['a'] }))).toThrow(
    expect.objectContaining({ code: 'invalid_option', message: 'two models are called "a"' }),
  );
  expect(() => create(entryOf('a', load, { aliases: ['b', 'b'] }))).toThrow('two models are called "b"');
  expect(create(entryOf('a', load)).list()).toMatchObject([{ isAdded: false }]);
});

test('[M12] a model that is lost while the server shuts down is not loaded again', async () => {
  const { host, models, loads, use } = createFakeModels({ a: 1 });
  await use('a');
  await host.dispose();
  models.get('a')!.lose(new RuvLLMError('engine_stalled', 'no step'));
  await settle();
  expect(loads).toEqual(['a']);
  await expect(host.acquire('a', { signal: SIGNAL, waitMs: 10 })).rejects.toMatchObject({
    message: 'the server is shutting down',
    isRetryable: true,
  });
});

test('[M13] a minute after its load an engine is stable', async () => {
  const { models, loads, use, finish, clock } = createFakeModels({ a: 1 });
  await use('a');
  const crashAfter = async (ms: number): Promise<void> => {
    clock.advance(ms);
    models.get('a')!.isAlive = false;
    models.get('a')!.lose(new RuvLLMError('engine_crashed', 'SIGSEGV'));
    await settle();
  };
  await crashAfter(59_999);
  await finish('a');
  await crashAfter(60_000);
  expect(loads).toHaveLength(3); // stable: at once
  await finish('a');
  await crashAfter(59_999);
  expect(loads).toHaveLength(4); // the first early one since
  await finish('a');
  await crashAfter(59_999);
  expect(loads).toHaveLength(4);
});

test('[M5] an unloaded model forgets the error of its last load and the loss of its engine', async () => {
  const { host, acquire, pending, models, use } = createFakeModels({ a: 1 });
  const failing = acquire('a');
  await settle();
  pending.pop()!.reject(new RuvLLMError('io', 'no such file'));
  await expect(failing).rejects.toThrow('no such file');
  expect(await host.unload('a', GENTLY)).toMatchObject({ state: 'unloaded', error: null });
  await use('a');
  models.get('a')!.isAlive = false;
  models.get('a')!.lose(new RuvLLMError('engine_crashed', 'SIGSEGV'));
  await settle();
  pending.pop()!.reject(new RuvLLMError('io', 'gone'));
  await settle();
  expect(host.find('a')).toMatchObject({ state: 'failed', loss: 'crashed' });
  expect(await host.unload('a', GENTLY)).toMatchObject({ state: 'unloaded', error: null, loss: null });
});

test.each([
  ['waits for it', 1000],
  ['has stopped waiting', 0],
])('[M6] a model is not removed if a request that came while its memory was given back %s', async (_name, waitMs) => {
  const { host, acquire } = createFakeModels({ a: 1 });
  let giveBack = (): void => {};
  let load = (): void => {};
  const model = {
    modelInfo: () => ({ memory: { totalBytes: 7 } }),
    isLoaded: () => true,
    onLost() {},
    dispose: () => new Promise<void>((resolve) => (giveBack = resolve)),
  } as unknown as Model;
  host.add(entryOf('new', () => new Promise((resolve) => (load = () => resolve(model))), { sizeBytes: 5 }));
  const first = acquire('new');
  await settle();
  expect(host.memory.usedBytes).toBe(5); // promised while it is loaded
  load();
  (await first).release();
  expect(host.memory.usedBytes).toBe(7);
  const removing = host.remove('new', GENTLY);
  await settle();
  const again = acquire('new', waitMs).catch(() => null);
  await settle();
  giveBack();
  await expect(removing).rejects.toMatchObject({ code: 'conflict', message: 'model new is used again', isRetryable: true }); // prettier-ignore
  await settle();
  load();
  (await again)?.release();
  await settle();
  expect(host.find('new')).toMatchObject({ state: 'loaded' });
});
