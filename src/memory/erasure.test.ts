import { describe, expect, test } from 'vitest';
import { nameId } from './common/ids.ts';
import { openMemory } from './memory.ts';
import { createTestMemory, createWordEmbedder, type TestMemory } from './operations/harness.contract.ts';
import { createManualSchedule } from './audit/harness.contract.ts';
import { trajectoryName, trajectoryToRecord, type Trajectory } from './schemas/trajectory.ts';
import { AUDIT_KIND } from './types.ts';

const CANARY = 'xylocarp';
const idOf = (i: number): string => `00000000-0000-7000-8000-${String(i).padStart(12, '0')}`;

/** A request with everything that is stored of it. */
async function request(
  { memory, audit, store, services }: TestMemory,
  i: number,
  { user, session = 's1', ...changes }: { user: string; session?: string } & Partial<Trajectory>,
): Promise<void> {
  const requestId = idOf(i);
  const query = changes.query ?? `${user} ${CANARY} ${i}`;
  await audit([{ requestId, userId: user, sessionId: session, query, response: query }]);
  const vector = (await memory.embed(query))!;
  await memory.meet('acme');
  await memory.sessions.addTurn('acme', session, { query, answer: query, requestId, embedding: vector.vector, space: vector.space }, { userId: user }); // prettier-ignore
  const one: Trajectory = {
    requestId,
    sessionId: session,
    userId: user,
    model: 'm',
    createdMs: Math.floor(services.now()),
    expiresMs: null,
    query,
    prompt: query,
    answer: query,
    correction: null,
    steps: [],
    parameters: { propensity: null },
    retrieved: [],
    verdict: 'unknown',
    quality: null,
    latencyMs: 1,
    numOutputTokens: 1,
    feedback: [],
    isDistilled: false,
    embedding: null,
    space: null,
    ...changes,
  };
  const id = nameId(services.sha256, 'acme', ...trajectoryName(requestId));
  await store.put([trajectoryToRecord(one, { id, tenant: 'acme' })]);
}

/** All that the store says of a word. */
async function traces({ store }: TestMemory, word: string): Promise<number> {
  const kinds = ['document', 'qa-pair', 'session', AUDIT_KIND, 'trajectory', 'state'] as const;
  const { records } = await store.find('acme', { kinds, order: 'oldest', limit: 1000 });
  return records.filter((record) => JSON.stringify([record.body, record.fields]).includes(word)).length;
}

describe('a user', () => {
  test('leaves no record, turn or audit text; others stay, and the chain can be verified', async () => {
    const test = await createTestMemory();
    const { memory } = test;
    await request(test, 1, { user: 'ann' });
    await request(test, 2, { user: 'ben', session: 's2' });
    await request(test, 3, { user: 'ann' });
    expect(await traces(test, 'ann')).toBe(7); // of each request an entry, a turn and a trajectory, and the session
    const report = await memory.erase({ tenant: 'acme', userId: 'ann' });
    const parts = [
      { name: 'turns that wait for the disk', numLeft: 0 },
      { name: 'memory', numLeft: 0 },
    ];
    expect(report).toMatchObject({ userId: 'ann', parts });
    expect(report.parts[1]!.numFound).toBeGreaterThan(6);
    expect(await traces(test, 'ann')).toBe(0);
    expect(await traces(test, 'ben')).toBe(4);
    const { entries } = await memory.audit.search('acme', { text: CANARY });
    expect(entries.map(({ entry }) => entry.userId)).toEqual(['ben']);
    expect(await memory.audit.verify('acme')).toMatchObject({ isIntact: true, numChecked: 4 });
    expect((await memory.audit.aggregate('acme')).count).toBe(1);
    const exported: number[] = [];
    for await (const { link } of memory.audit.export('acme')) exported.push(link.sequence);
    expect(exported).toEqual([2, 4]);
    expect((await memory.audit.search('acme', { text: 'erased the content' })).entries[0]!.entry.erased).toEqual([
      1, 3,
    ]);
  });

  test('is erased from archived segments too', async () => {
    const test = await createTestMemory();
    const { memory, services, archive } = test;
    await request(test, 1, { user: 'ann' });
    await request(test, 2, { user: 'ben', session: 's2' });
    services.timeMs += 8 * 86_400_000;
    await memory.audit.retain('acme');
    const [before] = archive.files.keys();
    await memory.erase({ tenant: 'acme', userId: 'ann' });
    expect(archive.files.size).toBe(1);
    expect([...archive.files.keys()]).not.toEqual([before]);
    expect(await memory.audit.verify('acme')).toMatchObject({ isIntact: true, numArchived: 2 });
    const exported: string[] = [];
    for await (const { entry } of memory.audit.export('acme')) exported.push(entry.query);
    expect(exported).toEqual([`ben ${CANARY} 2`, '']);
  });
});

describe('a request', () => {
  test('is erased alone, with the copies of requests that repeat it', async () => {
    const test = await createTestMemory();
    const { memory, store, services } = test;
    await request(test, 1, { user: 'ann', query: 'first' });
    await request(test, 2, { user: 'ann', query: 'second', prompt: [{ role: 'user', content: 'first' }, { role: 'user', content: 'second' }] }); // prettier-ignore
    await request(test, 3, { user: 'ann', query: 'third', session: 's3' });
    await memory.erase({ tenant: 'acme', requestId: idOf(1) });
    expect((await memory.sessions.turns('acme', 's1')).map(({ query }) => query)).toEqual(['second']);
    expect(await memory.sessions.get('acme', 's1')).toMatchObject({ contextEmbedding: null });
    const stored = await store.get('acme', [1, 2, 3].map((i) => nameId(services.sha256, 'acme', ...trajectoryName(idOf(i))))); // prettier-ignore
    expect(stored.map((record) => record !== null)).toEqual([false, false, true]);
    expect(await traces(test, 'first')).toBe(0);
    const { entries } = await memory.audit.search('acme', { order: 'oldest' });
    expect(entries.map(({ entry }) => entry.query)).toEqual(['second', 'third', '']);
    expect(await memory.audit.verify('acme')).toMatchObject({ isIntact: true });
  });
});

test('a tombstone without the record of an erasure breaks the chain', async () => {
  const test = await createTestMemory();
  const { memory, store } = test;
  for (const i of [1, 2]) await request(test, i, { user: 'ann' });
  const query = { kinds: [AUDIT_KIND], order: 'oldest', limit: 1 } as const;
  const [record] = (await store.find('acme', query)).records;
  const { version: _version, updatedMs: _updated, ...forged } = record!;
  const { link } = record!.body as { link: object };
  await store.put([{ ...forged, fields: { sequence: 1 }, body: { entry: { isErased: true }, link } as never, vector: null, space: null }]); // prettier-ignore
  expect(await memory.audit.verify('acme')).toMatchObject({
    isIntact: false,
    brokenAt: { sequence: 1, reason: 'has no content, and no entry records its erasure' },
  });
});

describe('an interrupted erasure', () => {
  test.each([
    ['of a tenant', {}, 0, ['crash']],
    ['of a user', { userId: 'ann' }, 4, ['memory', 'crash']],
  ])('%s is completed after the next start', async (_, target, numOfBen, failedParts) => {
    const test = await createTestMemory();
    const { memory, store, services, archive } = test;
    await request(test, 1, { user: 'ann' });
    await request(test, 2, { user: 'ben', session: 's2' });
    memory.erasure.register({ name: 'crash', isLast: true, erase: () => Promise.reject(new Error('killed')), count: async () => 0 }); // prettier-ignore
    store.onCall = (operation) => {
      if (operation === 'delete') throw new Error('killed');
    };
    await expect(memory.erase({ tenant: 'acme', ...target })).rejects.toMatchObject({
      code: 'io',
      data: { failedParts },
    });
    store.onCall = () => {};
    const { schedule } = createManualSchedule();
    const next = await openMemory({ store, services, schedule, embedder: createWordEmbedder(), archive, report() {} });
    await next.erasure.resume();
    expect(await traces(test, 'ann')).toBe(0);
    expect(await traces(test, 'ben')).toBe(numOfBen);
    const notes = await store.find('ruvllm', { kinds: ['state'], filter: { fields: [{ field: 'name', is: '=', value: 'erasure' }] }, order: 'oldest', limit: 10 }); // prettier-ignore
    expect(notes.records).toEqual([]);
  });
});

test('places of other processes are named once', async () => {
  const { memory } = await createTestMemory();
  const place = { name: 'spill folder /x', erase: async () => {}, count: async () => 0 };
  await memory.erasure.addPlace(place);
  await memory.erasure.addPlace(place);
  expect(await memory.erasure.places()).toEqual(['spill folder /x']);
});

test('[OP11] writes during the erasure of their tenant are refused or erased; later ones are stored', async () => {
  const harness = await createTestMemory();
  const { memory, store } = harness;
  await memory.add('acme', { text: CANARY });
  const state = { isErasing: true };
  const codes = new Set<string>();
  const writers = Array.from({ length: 6 }, async (_, i) => {
    for (let n = 0; state.isErasing; n++) {
      const text = `${CANARY} ${i} ${n}`;
      const write =
        i % 3 === 0
          ? memory.add('acme', { text })
          : i % 3 === 1
            ? memory.documents.add('acme', { name: `${i}.txt`, content: text })
            : memory.sessions.addTurn('acme', `s${i}`, { query: text, answer: text });
      await write.then(() => codes.add('stored'), (error: { code: string }) => codes.add(error.code)); // prettier-ignore
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  // A part that takes its time after the store is erased.
  memory.erasure.register({
    name: 'slow',
    isLast: true,
    erase: () => new Promise((resolve) => void setTimeout(resolve, 30)),
    count: async () => 0,
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  const { parts } = await memory.erase({ tenant: 'acme' });
  state.isErasing = false;
  expect(parts.every(({ numLeft }) => numLeft === 0)).toBe(true);
  await Promise.all(writers);
  expect(codes).toEqual(new Set(['stored', 'conflict']));
  await memory.erase({ tenant: 'acme' }); // those that began after the proof
  expect(await traces(harness, CANARY)).toBe(0);
  await memory.add('acme', { text: CANARY });
  expect((await store.stats('acme')).numRecords.document).toBe(1);
});
