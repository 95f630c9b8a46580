import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICIES } from '../policies/defaults.ts';
import { UUID } from '../schemas/fixtures.contract.ts';
import { allEdgesOf, recordsOf } from '../test-store.contract.ts';
import { createTestMemory, createWordEmbedder, type TestMemory } from './harness.contract.ts';
import { AUDIT_KIND } from '../types.ts';

type Page = { records: { id: string; vector?: string }[]; next: string | null };

async function exportAll(memory: TestMemory, input: object = {}): Promise<Page['records']> {
  const records: Page['records'] = [];
  let after: string | undefined;
  do {
    const page = (await memory.run('memory.export', { ...input, ...(after === undefined ? {} : { after }) })) as Page;
    records.push(...page.records);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return records;
}

/** Documents, a fact that expires, a session with two turns and a policy with a past. */
async function fill({ memory, run, services }: TestMemory): Promise<void> {
  const ids: string[] = [];
  for (let index = 0; index < 5; index++) {
    services.timeMs += 10;
    ids.push(await memory.add('acme', { text: `text number ${'abcde'[index]}`, topic: 't', metadata: { index } }));
  }
  await run('memory.add', { text: 'soon gone', kind: 'fact', expiresMs: services.timeMs + 1e9 });
  await memory.graph.link('acme', [{ from: ids[0]!, to: ids[4]!, relation: 'cites', weight: 3, confidence: 0.25 }]);
  await memory.sessions.addTurn('acme', 's', { query: 'q one', answer: 'a' }, { userId: 'ada' });
  await memory.sessions.addTurn('acme', 's', { query: 'q two', answer: 'b' });
  const policy = { policyType: 'ewc', confidence: 0.5, source: 'operator', parameters: DEFAULT_POLICIES.ewc.parameters } as const; // prettier-ignore
  await memory.policies.put('acme', policy);
  await memory.policies.put('acme', { ...policy, fisherDiagonal: Float32Array.of(0.5) });
}

const withoutTimes = async ({ store }: TestMemory, tenant = 'acme') =>
  (await recordsOf(store, tenant)).map(({ updatedMs: _at, version: _count, ...record }) => record);

describe('[OP12] export and import', () => {
  test.each([
    ['without vectors, made anew', {}, 8],
    ['with vectors', { includeVectors: true }, 0],
  ])('a round trip %s brings everything back, links included', async (_name, options, numEmbedded) => {
    const from = await createTestMemory();
    await fill(from);
    const lines = await exportAll(from, { limit: 2, ...options });
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    const into = await createTestMemory();
    const counts = await into.run('memory.import', { records: lines });
    // Turns have no vector in their own memory: here they get one.
    const numTurns = 2;
    const expected = numEmbedded === 0 ? numTurns : numEmbedded;
    expect(counts).toMatchObject({ numAdded: 11, numReplaced: 0, numRefused: 0, numEmbedded: expected, refused: [] });
    const strip = (records: Awaited<ReturnType<typeof withoutTimes>>) =>
      records.filter(({ kind }) => kind !== 'state').map((one) => ('sessionId' in one.fields ? { ...one, vector: null, space: null } : one)); // prettier-ignore
    expect(strip(await withoutTimes(into))).toEqual(strip(await withoutTimes(from)));
    const edges = async ({ store }: TestMemory) =>
      (await allEdgesOf(store)).map(({ updatedMs: _at, ...edge }) => JSON.stringify(edge)).sort();
    expect(await edges(into)).toEqual(await edges(from));
    expect(await into.memory.sessions.turns('acme', 's')).toMatchObject([{ query: 'q two' }, { query: 'q one' }]);
    expect(await into.memory.policies.get('acme', 'ewc')).toMatchObject({ policyVersion: 2 });
    expect(await into.run('memory.import', { records: lines })).toMatchObject({ numAdded: 0, numReplaced: 11 });
  });

  test('imports named records into another tenant under their names', async () => {
    const from = await createTestMemory();
    await fill(from);
    const lines = await exportAll(from);
    await from.run('memory.import', { records: lines }, 'other');
    expect(await from.memory.sessions.get('other', 's')).toMatchObject({ userId: 'ada', turnCount: 2 });
    expect(await from.memory.policies.history('other', 'ewc')).toHaveLength(2);
    expect(await from.run('memory.search', { text: 'text number a', k: 1 }, 'other')).toMatchObject({
      results: [{ text: 'text number a' }],
    });
  });

  test('embeds texts of another space again; without a model their vectors stay', async () => {
    const from = await createTestMemory(createWordEmbedder('elsewhere'));
    await from.run('memory.add', { text: 'lost card' });
    const [line] = await exportAll(from, { includeVectors: true });
    const into = await createTestMemory();
    expect(await into.run('memory.import', { records: [line] })).toMatchObject({ numEmbedded: 1 });
    expect(await into.run('memory.search', { text: 'lost card' })).toMatchObject({ results: [{ hops: 0 }] });
    const bare = await createTestMemory(null);
    expect(await bare.run('memory.import', { records: [line] })).toMatchObject({ numAdded: 1, numEmbedded: 0 });
    expect((await exportAll(bare, { includeVectors: true }))[0]).toMatchObject({
      space: 'elsewhere',
      vector: line!.vector,
    });
  });

  test('each record that does not fit is refused with its reason, and the others are written', async () => {
    const { run } = await createTestMemory();
    const good = { id: UUID, kind: 'fact', createdMs: 7, fields: { source: null, topic: null, quality: null }, body: { text: 'x', metadata: {} } }; // prettier-ignore
    const at = (n: number) => UUID.replace('aa', `0${n}`);
    const records = [
      good,
      { ...good, id: at(1), colour: 'red' },
      { ...good, id: at(2), kind: AUDIT_KIND },
      { ...good, id: at(3), fields: { ...good.fields, colour: 'red' } },
      { ...good, id: at(4), body: { text: 'x', metadata: {}, more: 1 } },
      { ...good, id: 'nobody' },
      good,
      { ...good, id: at(5), space: 'words-32', vector: 'AACAPw==' },
      'text',
    ];
    const result = await run('memory.import', { records });
    expect(result).toMatchObject({ numAdded: 1, numReplaced: 0, numRefused: 8 });
    const reasons = (result as { refused: { index: number; reason: string }[] }).refused;
    expect(reasons.map(({ index }) => index)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(reasons.map(({ reason }) => reason).join('\n')).toMatch(
      /"colour"[^\n]*\n[^\n]*kind witness cannot be imported[^\n]*\n[^\n]*colour[^\n]*\n[^\n]*more[^\n]*\n[^\n]*id[^\n]*\n[^\n]*twice[^\n]*\n[^\n]*length 1[^\n]*\n/,
    );
  });

  test('a link that cannot be made is counted', async () => {
    const { run } = await createTestMemory();
    const link = { from: UUID, to: UUID.replace('aa', '01'), relation: 'cites', weight: 1, confidence: 1 };
    const edges = [link, { ...link, relation: 'hates' }, { ...link, weight: -1 }];
    const record = { id: UUID, kind: 'fact', createdMs: 7, body: { text: 'x', metadata: {} }, edges };
    expect(await run('memory.import', { records: [record] })).toMatchObject({
      numAdded: 1,
      numEdges: 0,
      numEdgesLeftOut: 3,
    });
  });

  test('pages of large records end early, and nothing is left out', async () => {
    const memory = await createTestMemory();
    for (let index = 0; index < 5; index++)
      await memory.run('memory.add', { text: `${'word '.repeat(200_000)}${index}` });
    const page = (await memory.run('memory.export')) as Page;
    expect(page.records.length).toBeLessThan(5);
    expect(page.next).not.toBeNull();
    expect(await exportAll(memory)).toHaveLength(5);
  });
});
