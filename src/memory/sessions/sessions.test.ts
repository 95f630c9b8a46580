import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { sessionFixture } from '../schemas/fixtures.contract.ts';
import { turnToRecord } from '../schemas/session.ts';
import { allEdgesOf, createTestServices, createTestStore, recordsOf } from '../test-store.contract.ts';
import { createSessionIndex, sessionRecordId, type SessionOptions } from './sessions.ts';

const HOUR = 3_600_000;

function setUp(options?: SessionOptions) {
  const services = createTestServices();
  const store = createTestStore(services);
  return { services, store, sessions: createSessionIndex(store, services, options) };
}

describe('[SI1] a session', () => {
  test('is made by its first use, changed by the next, and read from any index over the store', async () => {
    const { services, store, sessions } = setUp();
    expect(await sessions.get('acme', 'chat-1')).toBeNull();
    const { userId, activeAdapter, metadata, contextEmbedding, space } = sessionFixture();
    await sessions.touch('acme', 'chat-1', { userId });
    services.timeMs += 5;
    await sessions.touch('acme', 'chat-1', { activeAdapter, metadata, contextEmbedding, space });
    const expected = {
      ...sessionFixture(),
      turnCount: 0,
      lastTurnId: null,
      createdMs: services.timeMs - 5,
      lastActiveMs: services.timeMs,
      idleEndMs: services.timeMs + 24 * HOUR,
    };
    expect(await sessions.get('acme', 'chat-1')).toEqual(expected);
    expect(await createSessionIndex(store, services).get('acme', 'chat-1')).toEqual(expected);
    expect(await sessions.get('other', 'chat-1')).toBeNull();
  });
  test('that does not fit is refused and nothing is written', async () => {
    const { store, sessions } = setUp();
    await expect(sessions.touch('acme', 'x'.repeat(300))).rejects.toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    );
    await expect(sessions.touch('acme', 'a\ud800')).rejects.toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    );
    await expect(sessions.touch('acme', 'a', { colour: 1 } as never)).rejects.toThrow(/colour|nrecognized/);
    expect(await recordsOf(store)).toEqual([]);
  });
});

describe('[SI2] the cache', () => {
  test('answers without the store, with acknowledged sessions only', async () => {
    const { store, sessions } = setUp();
    await sessions.touch('acme', 'chat-1', { userId: 'ada' });
    store.onCall = () => {
      throw new RuvLLMError('io', 'gone');
    };
    expect((await sessions.get('acme', 'chat-1'))!.userId).toBe('ada');
    await expect(sessions.touch('acme', 'chat-1', { userId: 'bob' })).rejects.toThrow('gone');
    store.onCall = () => {};
    expect((await sessions.get('acme', 'chat-1'))!.userId).toBe('ada');
    expect(sessions.stats()).toEqual({ numCached: 1, numHits: 1, numMisses: 1 });
  });
  test('is bounded', async () => {
    const { sessions } = setUp({ cacheEntries: 2 });
    for (const id of ['a', 'b', 'c']) await sessions.touch('acme', id);
    expect(sessions.peek('acme', 'a')).toBeUndefined();
    expect(sessions.peek('acme', 'c')!.sessionId).toBe('c');
    expect((await sessions.get('acme', 'a'))!.sessionId).toBe('a');
  });
  test('keys of tenant and session do not run into each other', async () => {
    const { sessions } = setUp();
    await sessions.touch('ab', 'c', { userId: 'one' });
    expect(sessions.peek('a', 'bc')).toBeUndefined();
  });
});

describe('[SI3] turns', () => {
  test('cost no search until the oldest are deleted, and no read of a session that is cached', async () => {
    const { store, sessions } = setUp({ maxTurns: 2 });
    const operations: string[] = [];
    store.onCall = (operation) => void operations.push(operation);
    const add = async (): Promise<string> => {
      operations.length = 0;
      await sessions.addTurn('acme', 'chat', { query: 'q', answer: 'a' });
      return operations.join(' ');
    };
    expect([await add(), await add(), await add()]).toEqual([
      'get put putEdges',
      'put putEdges',
      'put putEdges find delete',
    ]);
  });
  test.each([
    ['of a previous turn that is gone is passed over', new RuvLLMError('not_found', 'gone'), null],
    ['of the disk is thrown', new RuvLLMError('io', 'broken'), 'broken'],
    ['that only looks like one of ours is thrown', Object.assign(new Error('other'), { code: 'not_found' }), 'other'],
  ])('an error %s when edges are written', async (_name, error, thrown) => {
    const { store, sessions } = setUp();
    store.onCall = (operation) => {
      if (operation === 'putEdges') throw error;
    };
    const adding = sessions.addTurn('acme', 'chat', { query: 'q', answer: 'a' });
    if (thrown === null) expect(await adding).toMatchObject({ turn: 0, query: 'q' });
    else await expect(adding).rejects.toThrow(thrown);
    expect((await sessions.turns('acme', 'chat')).map(({ query }) => query)).toEqual(['q']);
  });
  test('take the rating of their request, which makes them trusted', async () => {
    const { services, store, sessions } = setUp();
    const [requestId, other] = [services.newId(), services.newId()];
    await sessions.addTurn('acme', 'chat-1', { query: 'q1', answer: 'a1', requestId });
    await sessions.addTurn('acme', 'chat-1', { query: 'q2', answer: 'a2', requestId: other });
    expect(await sessions.rateTurn('acme', 'chat-1', requestId, 0.9)).toBe(true);
    expect(await sessions.rateTurn('acme', 'chat-1', services.newId(), 0.9)).toBe(false);
    expect((await sessions.turns('acme', 'chat-1')).map(({ query, quality }) => [query, quality])).toEqual([['q2', null], ['q1', 0.9]]); // prettier-ignore
    const trusted = await store.find('acme', {
      kinds: ['qa-pair'],
      filter: { onlyTrusted: true },
      order: 'newest',
      limit: 9,
    });
    expect(trusted.records.map(({ body }) => (body as { query: string }).query)).toEqual(['q1']);
  });
  test('are records with edges to their session and to the turn before', async () => {
    const { services, store, sessions } = setUp();
    const first = await sessions.addTurn('acme', 'chat-1', { query: 'q1', answer: 'a1' });
    services.timeMs += 1;
    const second = await sessions.addTurn(
      'acme',
      'chat-1',
      { query: 'q2', answer: 'a2', quality: 0.5 },
      { activeAdapter: 'x' },
    );
    expect(await sessions.turns('acme', 'chat-1')).toEqual([second, first]);
    expect([first.turn, second.turn, second.quality]).toEqual([0, 1, 0.5]);
    expect(await sessions.get('acme', 'chat-1')).toMatchObject({
      turnCount: 2,
      lastTurnId: second.id,
      activeAdapter: 'x',
    });
    const sessionId = sessionRecordId(services.sha256, 'acme', 'chat-1');
    const edges = (await allEdgesOf(store)).map(({ from, to, relation }) => [from, relation, to].join(' '));
    const expected = [
      [sessionId, 'session', first.id],
      [sessionId, 'session', second.id],
      [second.id, 'follows', first.id],
    ];
    expect(edges.sort()).toEqual(expected.map((edge) => edge.join(' ')).sort());
  });
  test('are bounded, the newest kept', async () => {
    const { services, store, sessions } = setUp({ maxTurns: 3 });
    for (let i = 0; i < 7; i++) {
      services.timeMs += 1;
      await sessions.addTurn('acme', 'chat-1', { query: `q${i}`, answer: '' });
    }
    expect((await sessions.turns('acme', 'chat-1')).map(({ query }) => query)).toEqual(['q6', 'q5', 'q4']);
    expect((await recordsOf(store)).filter(({ kind }) => kind === 'qa-pair').length).toBe(3);
    expect((await sessions.get('acme', 'chat-1'))!.turnCount).toBe(7);
  });
  test('of two indexes at once get numbers of their own', async () => {
    const { services, store, sessions } = setUp();
    store.onCall = () => new Promise((resolve) => setImmediate(resolve));
    const other = createSessionIndex(store, services);
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        (i % 2 ? sessions : other).addTurn('acme', 'chat-1', { query: `q${i}`, answer: '' }),
      ),
    );
    const turns = await sessions.turns('acme', 'chat-1');
    expect(turns.map(({ turn }) => turn)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    expect(new Set(turns.map(({ query }) => query)).size).toBe(10);
  });
});

describe('[SI4] sessions are found', () => {
  test('by user, by adapter, by both, page by page', async () => {
    const { services, sessions } = setUp();
    const all = [['a', 'ada', 'x'], ['b', 'bob', 'x'], ['c', 'ada', 'y'], ['d', 'ada', 'x']]; // prettier-ignore
    for (const [id, userId, activeAdapter] of all) {
      services.timeMs += 1;
      await sessions.touch('acme', id!, { userId: userId!, activeAdapter: activeAdapter! });
    }
    const ids = async (query: object) =>
      (await sessions.find('acme', query)).sessions.map(({ sessionId }) => sessionId);
    expect(await ids({ userId: 'ada' })).toEqual(['d', 'c', 'a']);
    expect(await ids({ adapter: 'x' })).toEqual(['d', 'b', 'a']);
    expect(await ids({ userId: 'ada', adapter: 'x' })).toEqual(['d', 'a']);
    const page = await sessions.find('acme', { limit: 3 });
    expect(await ids({ limit: 3, after: page.next! })).toEqual(['a']);
  });
  test('by meaning', async () => {
    const { sessions } = setUp();
    await sessions.touch('acme', 'cards', { contextEmbedding: Float32Array.of(1, 0), space: 's', userId: 'ada' });
    await sessions.touch('acme', 'loans', { contextEmbedding: Float32Array.of(0, 1), space: 's', userId: 'bob' });
    const query = { vector: Float32Array.of(1, 0.1), space: 's', k: 5 };
    expect((await sessions.similar('acme', query)).map(({ session }) => session.sessionId)).toEqual(['cards', 'loans']);
    expect(
      (await sessions.similar('acme', { ...query, userId: 'bob' })).map(({ session }) => session.sessionId),
    ).toEqual(['loans']);
    expect(await sessions.similar('acme', { ...query, space: 'other' })).toEqual([]);
  });
});

describe('[SI5] a session that is idle for too long', () => {
  test('is not found, and is swept with its turns', async () => {
    const { services, store, sessions } = setUp({ idleMs: HOUR });
    await sessions.addTurn('acme', 'old', { query: 'q', answer: 'a' });
    services.timeMs += HOUR - 1;
    await sessions.addTurn('acme', 'new', { query: 'q', answer: 'a' });
    expect(await sessions.get('acme', 'old')).not.toBeNull();
    services.timeMs += 1;
    expect(await sessions.get('acme', 'old')).toBeNull();
    expect((await sessions.find('acme', {})).sessions.map(({ sessionId }) => sessionId)).toEqual(['new']);
    expect(await sessions.sweep('acme')).toBe(1);
    expect(await sessions.sweep('acme')).toBe(0);
    expect((await recordsOf(store)).map(({ kind }) => kind).sort()).toEqual(['qa-pair', 'session']);
    expect((await allEdgesOf(store)).length).toBe(1);
  });
  test('is not swept if it was used after it had been found', async () => {
    const { services, store, sessions } = setUp({ idleMs: HOUR });
    for (const id of ['used', 'idle']) await sessions.touch('acme', id);
    services.timeMs += HOUR;
    let isFound = false;
    store.onCall = async (operation) => {
      if (operation !== 'delete' || isFound) return;
      isFound = true;
      await sessions.touch('acme', 'idle');
    };
    expect(await sessions.sweep('acme')).toBe(1);
    expect(await sessions.get('acme', 'used')).toBeNull();
    expect(await sessions.get('acme', 'idle')).not.toBeNull();
  });
  test('is read from the store, and still not found', async () => {
    const { services, store, sessions } = setUp({ idleMs: HOUR });
    await sessions.touch('acme', 'chat');
    services.timeMs += HOUR;
    expect(await createSessionIndex(store, services).get('acme', 'chat')).toBeNull();
    services.timeMs -= 1;
    expect(await createSessionIndex(store, services).get('acme', 'chat')).not.toBeNull();
  });
  test('starts anew when it is used again', async () => {
    const { services, sessions } = setUp({ idleMs: HOUR });
    await sessions.addTurn('acme', 'chat', { query: 'secret', answer: 'a' }, { userId: 'ada' });
    services.timeMs += 2 * HOUR;
    await sessions.addTurn('acme', 'chat', { query: 'fresh', answer: 'a' });
    expect((await sessions.turns('acme', 'chat')).map(({ query }) => query)).toEqual(['fresh']);
    expect(await sessions.get('acme', 'chat')).toMatchObject({
      userId: null,
      turnCount: 1,
      createdMs: services.timeMs,
    });
  });
  test('a clock that goes back does not end it', async () => {
    const { services, sessions } = setUp({ idleMs: HOUR });
    await sessions.touch('acme', 'chat');
    const { idleEndMs, lastActiveMs } = (await sessions.get('acme', 'chat'))!;
    services.timeMs -= 10 * HOUR;
    expect(await sessions.touch('acme', 'chat')).toMatchObject({ idleEndMs, lastActiveMs });
    const turn = await sessions.addTurn('acme', 'chat', { query: 'q', answer: 'a' });
    expect(turn.createdMs).toBe(lastActiveMs);
  });
});

test('[SI6] remove takes the turns, however many, and says whether there was one', async () => {
  const { store, sessions } = setUp({ maxTurns: 5000 });
  for (let i = 0; i < 3; i++) await sessions.addTurn('acme', 'chat', { query: 'q', answer: 'a' });
  await sessions.addTurn('acme', 'other', { query: 'q', answer: 'a' });
  expect(await sessions.remove('acme', 'chat')).toBe(true);
  expect(await sessions.remove('acme', 'chat')).toBe(false);
  expect((await recordsOf(store)).length).toBe(2);
});

test('[SI6] a session with more turns than one call takes is removed with its last ones', async () => {
  const { services, store, sessions } = setUp({ maxTurns: 5000 });
  const { id: _, ...turn } = await sessions.addTurn('acme', 'chat', { query: 'q', answer: 'a' });
  const put = Array.from({ length: 999 }, () => ({ ...turnToRecord({ ...turn, id: services.newId() }, 'acme'), ifVersion: 0 })); // prettier-ignore
  await store.put(put);
  const numDeleted: number[] = [];
  store.onCall = (operation, ids) => {
    if (operation === 'delete') numDeleted.push((ids as readonly string[]).length);
  };
  expect(await sessions.remove('acme', 'chat')).toBe(true);
  expect(numDeleted).toEqual([999, 2]);
  expect(await recordsOf(store)).toEqual([]);
});
