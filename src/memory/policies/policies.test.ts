import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { policyEntry, POLICY_TYPES } from '../schemas/policy.ts';
import { createTestServices, createTestStore, recordsOf } from '../test-store.contract.ts';
import { DEFAULT_POLICIES } from './defaults.ts';
import { createPolicyMemory, type NewPolicy, type PolicyOptions } from './policies.ts';

function setUp(options?: PolicyOptions) {
  const services = createTestServices();
  const store = createTestStore(services);
  let numCalls = 0;
  store.onCall = () => void numCalls++;
  return { services, store, policies: createPolicyMemory(store, services, options), numCalls: () => numCalls };
}

const router = (winner: string, more: Partial<NewPolicy<'router'>> = {}): NewPolicy<'router'> => ({
  policyType: 'router',
  parameters: { version: 1, winner, candidates: [], metrics: {}, sampling: [] },
  confidence: 0.5,
  source: 'background-loop',
  ...more,
});

describe('[PM1] defaults', () => {
  test('apply until a policy is put, with source `default` and a reason', async () => {
    const { policies } = setUp();
    for (const type of POLICY_TYPES) {
      const policy = await policies.get('acme', type);
      expect(policyEntry.safeParse(policy).success).toBe(true);
      expect(policy).toMatchObject({ policyType: type, source: 'default', policyVersion: 0, confidence: 0 });
      expect(policy!.reason.length).toBeGreaterThan(20);
    }
    expect(await policies.get('acme', 'router', 'another name')).toBeNull();
    await policies.put('acme', router('wasm'));
    expect(await policies.get('acme', 'router')).toMatchObject({
      source: 'background-loop',
      parameters: { winner: 'wasm' },
    });
    expect((await policies.get('other', 'router'))!.source).toBe('default');
    await policies.remove('acme', 'router');
    expect(await policies.get('acme', 'router')).toEqual(DEFAULT_POLICIES.router);
  });
});

describe('[PM2] versions', () => {
  test('each put adds one, and older ones can be read', async () => {
    const { services, policies } = setUp();
    for (const pack of ['a', 'b', 'c']) {
      services.timeMs += 10;
      await policies.put('acme', router(pack, { reason: `because ${pack}` }));
    }
    const history = await policies.history('acme', 'router');
    expect(history.map(({ policyVersion, parameters, reason }) => [policyVersion, parameters.winner, reason])).toEqual([
      [3, 'c', 'because c'],
      [2, 'b', 'because b'],
      [1, 'a', 'because a'],
    ]);
    expect(history[2]!.createdMs).toBe(Date.UTC(2026, 0, 1) + 10);
  });
  test('a rollback to a rollback names the first reason once', async () => {
    const { policies } = setUp();
    await policies.put('acme', router('a', { reason: 'because a' }));
    for (const version of [1, 2]) await policies.rollback('acme', 'router', version);
    const reasons = (await policies.history('acme', 'router')).map(({ reason }) => reason);
    expect(reasons).toEqual(['back to version 2: because a', 'back to version 1: because a', 'because a']);
  });
  test('rollback restores an older one as a new one', async () => {
    const { policies } = setUp();
    for (const pack of ['a', 'b']) await policies.put('acme', router(pack));
    expect(await policies.rollback('acme', 'router', 1)).toMatchObject({
      policyVersion: 3,
      parameters: { winner: 'a' },
      reason: 'back to version 1',
    });
    expect(await policies.get('acme', 'router')).toMatchObject({ policyVersion: 3, parameters: { winner: 'a' } });
    expect((await policies.history('acme', 'router')).map(({ parameters }) => parameters.winner)).toEqual([
      'a',
      'b',
      'a',
    ]);
    await expect(policies.rollback('acme', 'router', 9)).rejects.toThrow(
      expect.objectContaining({ code: 'not_found' }),
    );
  });
  test('are limited in number', async () => {
    const { store, policies } = setUp({ maxHistory: 2 });
    for (const pack of ['a', 'b', 'c', 'd', 'e']) await policies.put('acme', router(pack));
    expect((await policies.history('acme', 'router')).map(({ policyVersion }) => policyVersion)).toEqual([5, 4, 3]);
    expect((await recordsOf(store)).length).toBe(3);
  });
  test('of two concurrent writers are all stored', async () => {
    const { services, store, policies } = setUp();
    store.onCall = () => new Promise((resolve) => setImmediate(resolve));
    const other = createPolicyMemory(store, services);
    const packs = ['a', 'b', 'c', 'd', 'e', 'f'];
    await Promise.all(packs.map((pack, i) => (i % 2 ? policies : other).put('acme', router(pack))));
    const history = await policies.history('acme', 'router');
    expect(history.map(({ policyVersion }) => policyVersion)).toEqual([6, 5, 4, 3, 2, 1]);
    expect(history.map(({ parameters }) => parameters.winner).sort()).toEqual(packs);
  });
  test('rejects parameters of another type and writes nothing', async () => {
    const { store, policies } = setUp();
    await expect(policies.put('acme', router('a', { confidence: NaN }))).rejects.toThrow(/confidence/);
    await expect(policies.put('acme', router('a', { parameters: { lambda: 3 } as never }))).rejects.toThrow(
      /parameters/,
    );
    await expect(policies.put('acme', { ...router('a'), extra: 1 } as never)).rejects.toThrow(/extra/);
    expect(await recordsOf(store)).toEqual([]);
  });
});

describe('[PM3] reads', () => {
  test('are served from the cache until they expire', async () => {
    const { services, store, policies, numCalls } = setUp({ ttlMs: 1000 });
    await policies.put('acme', router('a'));
    const other = createPolicyMemory(store, services);
    await other.put('acme', router('b'));
    const before = numCalls();
    services.timeMs += 999;
    expect((await policies.get('acme', 'router'))!.parameters.winner).toBe('a');
    expect(policies.peek('acme', 'router')!.parameters.winner).toBe('a');
    expect(numCalls()).toBe(before);
    services.timeMs += 1;
    expect(policies.peek('acme', 'router')).toBeUndefined();
    expect((await policies.get('acme', 'router'))!.parameters.winner).toBe('b');
  });
  test('return what another process wrote or removed after a refresh', async () => {
    const { services, store, policies } = setUp();
    await policies.put('acme', router('a'));
    const other = createPolicyMemory(store, services);
    await other.put('acme', router('b'));
    await policies.refresh('acme', 'router');
    expect(policies.peek('acme', 'router')).toMatchObject({ policyVersion: 2, parameters: { winner: 'b' } });
    await other.remove('acme', 'router');
    await policies.refresh('acme', 'router');
    expect(policies.peek('acme', 'router')).toMatchObject({ policyVersion: 0 });
  });
  test('a refresh that began before a local put does not replace it', async () => {
    const { policies } = setUp();
    await policies.put('acme', router('a'));
    const refreshing = policies.refresh('acme', 'router');
    await policies.put('acme', router('b'));
    await refreshing;
    expect(policies.peek('acme', 'router')!.parameters.winner).toBe('b');
  });
  test('return a local put at once, also after a failed put', async () => {
    const { store, policies } = setUp();
    await policies.put('acme', router('a'));
    store.onCall = (operation) => {
      if (operation === 'put') throw new RuvLLMError('disk_full', 'full');
    };
    await expect(policies.put('acme', router('b'))).rejects.toThrow('full');
    expect((await policies.get('acme', 'router'))!.parameters.winner).toBe('a');
  });
  test('a clock that goes back expires cached policies', async () => {
    const { services, policies } = setUp({ ttlMs: 1000 });
    await policies.put('acme', router('a'));
    services.timeMs -= 1;
    expect(policies.peek('acme', 'router')).toBeUndefined();
    expect((await policies.get('acme', 'router'))!.parameters.winner).toBe('a');
  });
  test('return frozen values', async () => {
    const { policies } = setUp();
    await policies.put('acme', router('a'));
    const policy = (await policies.get('acme', 'router'))!;
    expect(() => Object.assign(policy.parameters, { winner: 'evil' })).toThrow(TypeError);
    expect(() => Object.assign(DEFAULT_POLICIES.router.parameters, {})).not.toThrow();
  });
});

describe('[PM4] time of use', () => {
  test('is recorded by reads and written only by flushAccess', async () => {
    const { services, store, policies, numCalls } = setUp();
    await policies.put('acme', router('a'));
    services.timeMs += 500;
    const before = numCalls();
    for (let i = 0; i < 100; i++) await policies.get('acme', 'router');
    expect(numCalls()).toBe(before);
    expect(await policies.flushAccess()).toBe(1);
    expect(await policies.flushAccess()).toBe(0);
    const read = await createPolicyMemory(store, services).get('acme', 'router');
    expect(read).toMatchObject({ lastAccessedMs: services.timeMs, policyVersion: 1, createdMs: services.timeMs - 500 });
    await policies.put('acme', router('b'));
    expect((await policies.history('acme', 'router')).length).toBe(2);
  });
  test('of a version replaced meanwhile is dropped', async () => {
    const { services, store, policies } = setUp();
    await policies.put('acme', router('a'));
    services.timeMs += 1;
    await policies.get('acme', 'router');
    await createPolicyMemory(store, services).put('acme', router('b'));
    expect(await policies.flushAccess()).toBe(0);
    expect((await policies.get('acme', 'router'))!.parameters.winner).toBe('b');
  });
});
