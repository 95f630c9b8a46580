import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICIES } from '../policies/defaults.ts';
import { UUID } from '../schemas/fixtures.contract.ts';
import { createTestMemory } from './harness.contract.ts';
import { operationPath } from './operation-names.ts';
import { MEMORY_OPERATIONS } from './table.ts';

const START_MS = Date.UTC(2026, 0, 1);
const idOf = (value: unknown): string => (value as { id: string }).id;
type Page = { records: { id: string; kind: string }[]; next: string | null };

/** The lexical score of a text with all words of the query, once each. */
const FULL_MATCH = 1 / 2.2;

describe('[OP1] the table', () => {
  test('names, paths and scopes', () => {
    expect(MEMORY_OPERATIONS.map((operation) => [operation.name, operationPath(operation), operation.scope])).toEqual([
      ['memory.add', '/admin/memory/add', 'write'],
      ['memory.get', '/admin/memory/get', 'read'],
      ['memory.search', '/admin/memory/search', 'read'],
      ['memory.remove', '/admin/memory/remove', 'write'],
      ['memory.stats', '/admin/memory/stats', 'read'],
      ['memory.health', '/admin/memory/health', 'admin'],
      ['memory.backup', '/admin/memory/backup', 'admin'],
      ['memory.check', '/admin/memory/check', 'admin'],
      ['memory.neighbours', '/admin/memory/neighbours', 'read'],
      ['memory.link', '/admin/memory/link', 'write'],
      ['memory.list', '/admin/memory/list', 'read'],
      ['memory.graph', '/admin/memory/graph', 'read'],
      ['documents.add', '/admin/memory/documents/add', 'write'],
      ['documents.list', '/admin/memory/documents/list', 'read'],
      ['documents.get', '/admin/memory/documents/get', 'read'],
      ['documents.remove', '/admin/memory/documents/remove', 'write'],
      ['documents.remove-missing', '/admin/memory/documents/remove-missing', 'write'],
      ['memory.export', '/admin/memory/export', 'read'],
      ['memory.import', '/admin/memory/import', 'admin'],
      ['audit.search', '/admin/memory/audit/search', 'read'],
      ['audit.stats', '/admin/memory/audit/stats', 'read'],
      ['audit.verify', '/admin/memory/audit/verify', 'read'],
      ['audit.export', '/admin/memory/audit/export', 'read'],
      ['audit.show', '/admin/memory/audit/show', 'read'],
      ['audit.similar', '/admin/memory/audit/similar', 'read'],
      ['audit.decisions', '/admin/memory/audit/decisions', 'read'],
      ['sessions.list', '/admin/memory/sessions/list', 'read'],
      ['sessions.show', '/admin/memory/sessions/show', 'read'],
      ['sessions.rm', '/admin/memory/sessions/rm', 'write'],
      ['policies.list', '/admin/memory/policies/list', 'read'],
      ['policies.get', '/admin/memory/policies/get', 'read'],
      ['policies.history', '/admin/memory/policies/history', 'read'],
      ['policies.rollback', '/admin/memory/policies/rollback', 'admin'],
      ['agents.recall', '/admin/memory/agents/recall', 'read'],
      ['facts.list', '/admin/memory/facts/list', 'read'],
      ['facts.why', '/admin/memory/facts/why', 'read'],
      ['facts.pin', '/admin/memory/facts/pin', 'write'],
      ['facts.forget', '/admin/memory/facts/forget', 'write'],
      ['episodes.add', '/admin/memory/episodes/add', 'write'],
      ['notes.list', '/admin/memory/notes/list', 'read'],
      ['notes.add', '/admin/memory/notes/add', 'write'],
      ['notes.clear', '/admin/memory/notes/clear', 'write'],
      ['tool-cache.list', '/admin/memory/tool-cache/list', 'read'],
      ['tool-cache.stats', '/admin/memory/tool-cache/stats', 'read'],
      ['tool-cache.clear', '/admin/memory/tool-cache/clear', 'write'],
      ['tenants.erase', '/admin/memory/tenants/erase', 'admin'],
      ['memory.rotate-key', '/admin/memory/rotate-key', 'admin'],
    ]);
  });

  test('[OP2] refuses input that is not an object, unknown keys by name, and the memory’s own tenant', async () => {
    const { run } = await createTestMemory();
    for (const { name } of MEMORY_OPERATIONS) {
      await expect(run(name, null), name).rejects.toMatchObject({ code: 'invalid_option' });
      await expect(run(name, { nonsense: 1, id: UUID, ids: [UUID], text: 'x' }), name).rejects.toMatchObject({
        code: 'invalid_option',
      });
      await expect(run(name, {}, 'ruvllm'), name).rejects.toMatchObject({ data: { option: 'tenant' } });
    }
    await expect(run('memory.stats', { nonsense: 1 })).rejects.toMatchObject({ data: { option: 'nonsense' } });
  });
});

describe('memory', () => {
  test('[OP3] add, get, search, stats, remove: exact', async () => {
    const { run } = await createTestMemory();
    const item = { text: 'the card is lost', source: 'faq', topic: 'cards', quality: 0.5, metadata: { a: [1] } };
    const id = idOf(await run('memory.add', item));
    await run('memory.add', { text: 'weather in spring', kind: 'fact' });
    const fields = { source: 'faq', topic: 'cards', quality: 0.5 };
    expect(await run('memory.get', { id })).toEqual({
      record: {
        id,
        kind: 'document',
        createdMs: START_MS,
        updatedMs: START_MS,
        expiresMs: null,
        version: 1,
        fields,
        body: { text: 'the card is lost', metadata: { a: [1] } },
        space: 'words-32',
      },
      text: 'the card is lost',
    });
    const found = await run('memory.search', { text: 'the card is lost', k: 1, tokenBudget: 100 });
    expect(found).toEqual({
      results: [
        {
          id,
          kind: 'document',
          text: 'the card is lost',
          score: expect.closeTo(1 + FULL_MATCH, 1) as number,
          similarity: expect.closeTo(1, 5) as number,
          lexical: expect.closeTo(FULL_MATCH, 1) as number,
          hops: 0,
          createdMs: START_MS,
          fields,
        },
      ],
      numDuplicates: 0,
      context: {
        text: '[1] the card is lost\n',
        sources: [{ number: 1, id, kind: 'document', numTokens: 6, position: null, isCut: false }],
        numTokens: 6,
        numLeftOut: 0,
        isEstimated: true,
      },
    });
    expect(await run('memory.stats')).toEqual({
      tenant: 'acme',
      numRecords: { document: 1, fact: 1 },
      numEdges: 0,
      numVectors: 2,
      space: 'words-32',
      embedder: 'words-32',
      reindex: null,
      isDegraded: false,
    });
    expect(await run('memory.remove', { ids: [id, id] })).toEqual({ numRemoved: 1 });
    await expect(run('memory.get', { id })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('[OP3] does not return expired records before the sweep', async () => {
    const { run, services } = await createTestMemory();
    const id = idOf(await run('memory.add', { text: 'for a moment', expiresMs: START_MS + 1000 }));
    expect(((await run('memory.export')) as Page).records).toHaveLength(1);
    services.timeMs += 1000;
    await expect(run('memory.get', { id })).rejects.toMatchObject({ code: 'not_found' });
    expect(await run('memory.search', { text: 'moment' })).toMatchObject({ results: [] });
    expect(await run('memory.export')).toEqual({ records: [], next: null });
  });

  test('[OP4] vectors come only when they are asked for', async () => {
    const { run, memory, audit } = await createTestMemory();
    const id = idOf(await run('memory.add', { text: 'card' }));
    await audit([{}]);
    await memory.sessions.addTurn(
      'acme',
      's',
      { query: 'q', answer: 'a' },
      {
        contextEmbedding: Float32Array.of(1),
        space: 'other',
      },
    );
    const calls: [string, object][] = [
      ['memory.get', { id }],
      ['memory.search', { text: 'card' }],
      ['memory.export', {}],
      ['audit.search', {}],
      ['audit.export', {}],
      ['sessions.show', { sessionId: 's' }],
      ['sessions.list', {}],
    ];
    const floats = /"(?:vector|embedding|queryEmbedding|contextEmbedding|\$f32)":/;
    for (const [name, input] of calls) {
      expect(JSON.stringify(await run(name, input)), name).not.toMatch(floats);
      expect(JSON.stringify(await run(name, { ...input, includeVectors: true })), name).toMatch(floats);
    }
  });

  test('[OP5] filters: an unknown field is named, times and fields hold', async () => {
    const { run, services } = await createTestMemory();
    await run('memory.add', { text: 'red card', topic: 'a' });
    services.timeMs += 1000;
    await run('memory.add', { text: 'blue card', topic: 'b' });
    const texts = async (query: object): Promise<string[]> => {
      const { results } = (await run('memory.search', { text: 'card', ...query })) as { results: { text: string }[] };
      return results.map(({ text }) => text).sort();
    };
    expect(await texts({})).toEqual(['blue card', 'red card']);
    expect(await texts({ filter: [{ field: 'topic', is: 'in', values: ['b'] }] })).toEqual(['blue card']);
    expect(await texts({ toMs: START_MS + 1 })).toEqual(['red card']);
    expect(await texts({ kinds: ['fact'] })).toEqual([]);
    await expect(texts({ filter: [{ field: 'colour', is: '=', value: 'red' }] })).rejects.toThrow(
      /unknown field "colour".*known: .*topic/,
    );
    await expect(texts({ filter: [{ field: 'topic', is: '=', value: 'a', or: 1 }] })).rejects.toMatchObject({
      data: { option: 'filter.0.or' },
    });
  });

  test('[OP6] refuses to remove or replace records that callers cannot add', async () => {
    const { run, audit } = await createTestMemory();
    await audit([{}]);
    const { entries } = (await run('audit.search')) as { entries: { id: string }[] };
    const { id } = entries[0]!;
    await expect(run('memory.remove', { ids: [id] })).rejects.toThrow('has the kind witness');
    const line = { id, kind: 'document', createdMs: 5, fields: {}, body: { text: 'x', metadata: {} } };
    expect(await run('memory.import', { records: [line] })).toMatchObject({
      numRefused: 1,
      refused: [{ index: 0, id, reason: 'the id belongs to a record of the kind witness' }],
    });
    expect(await run('audit.verify')).toMatchObject({ isIntact: true, numChecked: 1 });
  });

  test('[OP7] nothing of another tenant is seen, changed or linked', async () => {
    const { run, memory, audit } = await createTestMemory();
    const id = idOf(await run('memory.add', { text: 'secret card' }));
    await audit([{}]);
    await memory.sessions.touch('acme', 's');
    const other = 'other';
    await expect(run('memory.get', { id }, other)).rejects.toMatchObject({ code: 'not_found' });
    await expect(run('memory.neighbours', { id }, other)).rejects.toMatchObject({ code: 'not_found' });
    await expect(run('sessions.show', { sessionId: 's' }, other)).rejects.toMatchObject({ code: 'not_found' });
    await expect(run('sessions.rm', { sessionId: 's' }, other)).rejects.toMatchObject({ code: 'not_found' });
    expect(await run('memory.search', { text: 'secret card' }, other)).toMatchObject({ results: [] });
    expect(await run('memory.remove', { ids: [id] }, other)).toEqual({ numRemoved: 0 });
    expect(await run('memory.export', {}, other)).toEqual({ records: [], next: null });
    expect(await run('audit.search', {}, other)).toMatchObject({ entries: [] });
    expect(await run('audit.export', {}, other)).toEqual({ entries: [], next: null });
    expect(await run('audit.stats', {}, other)).toMatchObject({ count: 0 });
    expect(await run('sessions.list', {}, other)).toEqual({ sessions: [], next: null });
    expect(await run('memory.stats', {}, other)).toMatchObject({ numRecords: {}, numVectors: 0 });
  });

  test('[GR1] neighbours with relation, direction and text', async () => {
    const { run, memory } = await createTestMemory();
    const [a, b] = [idOf(await run('memory.add', { text: 'one' })), idOf(await run('memory.add', { text: 'two' }))];
    await memory.graph.link('acme', [{ from: a, to: b, relation: 'cites', weight: 2, confidence: 0.5 }]);
    const edge = { relation: 'cites', weight: 2, confidence: 0.5, updatedMs: START_MS, kind: 'document' };
    expect(await run('memory.neighbours', { id: a })).toEqual({
      neighbours: [{ id: b, direction: 'out', text: 'two', ...edge }],
    });
    expect(await run('memory.neighbours', { id: b })).toEqual({
      neighbours: [{ id: a, direction: 'in', text: 'one', ...edge }],
    });
    expect(await run('memory.neighbours', { id: b, direction: 'out' })).toEqual({ neighbours: [] });
  });

  test('[GR6] a link joins two records of the tenant, and nothing else', async () => {
    const { run } = await createTestMemory();
    const [a, b] = [idOf(await run('memory.add', { text: 'one' })), idOf(await run('memory.add', { text: 'two' }))];
    const foreign = idOf(await run('memory.add', { text: 'three' }, 'other'));
    const edge = { from: a, to: b, relation: 'cites' };
    expect(await run('memory.link', edge)).toEqual({ ...edge, weight: 1, confidence: 1 });
    await run('memory.link', { ...edge, weight: 3 });
    expect(await run('memory.neighbours', { id: a })).toMatchObject({ neighbours: [{ id: b, weight: 3 }] });
    for (const to of [foreign, UUID]) {
      await expect(run('memory.link', { ...edge, to })).rejects.toMatchObject({ code: 'not_found' });
    }
    await expect(run('memory.link', { ...edge, to: a })).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(run('memory.link', { ...edge, relation: 'likes' })).rejects.toMatchObject({ code: 'invalid_option' });
    expect(await run('memory.stats', {})).toMatchObject({ numEdges: 1 });
  });
});

describe('audit', () => {
  test('[OP8] search by words, meaning and numbers; pages; stats; verify; export', async () => {
    const { run, audit } = await createTestMemory();
    const error = { code: 'deadline_exceeded', message: 'too slow', isRetryable: true };
    await audit([{ query: 'lost card' }, { query: 'spring weather', error }, { query: 'stolen card', quality: 0.1 }]);
    const queries = async (input: object): Promise<string[]> => {
      const page = (await run('audit.search', input)) as { entries: { entry: { query: string } }[] };
      return page.entries.map(({ entry }) => entry.query);
    };
    expect(await queries({ order: 'oldest' })).toEqual(['lost card', 'spring weather', 'stolen card']);
    expect(await queries({ text: 'CARD', maxQuality: 0.2 })).toEqual(['stolen card']);
    expect(await queries({ hasError: true, similarTo: 'weather' })).toEqual(['spring weather']);
    expect((await queries({ similarTo: 'lost card' }))[0]).toBe('lost card');
    expect(await queries({ similarTo: 'lost card', minSimilarity: 0.9 })).toEqual(['lost card']);
    await expect(queries({ minSimilarity: 0.9 })).rejects.toMatchObject({ data: { option: 'minSimilarity' } });
    await expect(queries({ similarTo: '???' })).rejects.toMatchObject({ data: { option: 'similarTo' } });
    const first = (await run('audit.search', { limit: 2, order: 'oldest' })) as { next: string };
    expect(await queries({ limit: 2, order: 'oldest', after: first.next })).toEqual(['stolen card']);
    expect(await run('audit.stats')).toMatchObject({
      count: 3,
      numErrors: 1,
      models: [{ model: 'stories15M', share: 1 }],
    });
    expect(await run('audit.verify')).toMatchObject({ isIntact: true, numChecked: 3, brokenAt: null, gaps: [] });
    const page = (await run('audit.export', { limit: 2 })) as {
      entries: { link: { sequence: number } }[];
      next: number;
    };
    expect([page.entries.map(({ link }) => link.sequence), page.next]).toEqual([[1, 2], 2]);
    expect(await run('audit.export', { after: 2 })).toMatchObject({ entries: [{ link: { sequence: 3 } }], next: null });
    expect(await run('memory.health')).toMatchObject({ audit: { numWritten: 3, numDropped: 0, gaps: [] } });
  });

  test('[OP8] an export goes through the archive, page by page', async () => {
    const { run, audit, memory, services } = await createTestMemory();
    await audit(Array.from({ length: 7 }, (_, index) => ({ query: `card ${index}` })));
    services.timeMs += 8 * 86_400_000;
    await audit([{ query: 'new card' }, { query: 'newer card' }]);
    await memory.audit.retain('acme');
    const seen: unknown[] = [];
    let after: number | null = 0;
    while (after !== null) {
      const page = (await run('audit.export', { limit: 3, after })) as {
        entries: { entry: { query: string }; isArchived: boolean }[];
        next: number | null;
      };
      seen.push(...page.entries.map(({ entry, isArchived }) => [entry.query, isArchived]));
      after = page.next;
    }
    const archived = Array.from({ length: 7 }, (_, index) => [`card ${index}`, true]);
    expect(seen).toEqual([...archived, ['new card', false], ['newer card', false]]);
  });
});

test('[OP9] sessions: by user, adapter and meaning; turns; removal', async () => {
  const { run, memory } = await createTestMemory();
  const about = async (words: string) => {
    const { vector, space } = (await memory.embed(words))!;
    return { contextEmbedding: vector, space };
  };
  await memory.sessions.addTurn('acme', 'a', { query: 'lost card', answer: 'no' }, { userId: 'ada', ...(await about('lost card')) }); // prettier-ignore
  await memory.sessions.touch('acme', 'b', { userId: 'bob', activeAdapter: 'legal', ...(await about('weather')) });
  const names = async (input: object): Promise<string[]> => {
    const { sessions } = (await run('sessions.list', input)) as { sessions: { sessionId: string }[] };
    return sessions.map(({ sessionId }) => sessionId);
  };
  expect((await names({})).sort()).toEqual(['a', 'b']);
  expect(await names({ userId: 'ada' })).toEqual(['a']);
  expect(await names({ similarTo: 'card lost' })).toEqual(['a', 'b']);
  expect(await names({ similarTo: 'card lost', adapter: 'legal' })).toEqual(['b']);
  await expect(names({ similarTo: 'card', after: 'x' })).rejects.toMatchObject({ data: { option: 'after' } });
  expect(await run('sessions.show', { sessionId: 'a' })).toMatchObject({
    session: { sessionId: 'a', userId: 'ada', turnCount: 1 },
    turns: [{ query: 'lost card', answer: 'no', turn: 0 }],
  });
  expect(await run('sessions.rm', { sessionId: 'a' })).toEqual({ sessionId: 'a', isRemoved: true });
  await expect(run('sessions.rm', { sessionId: 'a' })).rejects.toMatchObject({ code: 'not_found' });
});

test('[OP10] policies: list with defaults, get, history, rollback', async () => {
  const { run, memory } = await createTestMemory();
  const { parameters } = DEFAULT_POLICIES.ewc;
  const put = { policyType: 'ewc', confidence: 0.5, source: 'operator', parameters } as const;
  await memory.policies.put('acme', { ...put, fisherDiagonal: Float32Array.of(1, 2) });
  await memory.policies.put('acme', { ...put, parameters: { ...parameters, maxTasks: 3 } });
  const { policies, defaults } = (await run('policies.list')) as Record<string, { policyType: string }[]>;
  expect(policies!.map(({ policyType }) => policyType)).toEqual(['ewc']);
  expect(defaults!.map(({ policyType }) => policyType).sort()).toEqual(['router']);
  expect(await run('policies.get', { policyType: 'ewc' })).toMatchObject({
    policy: { policyVersion: 2, parameters: { maxTasks: 3 } },
  });
  expect(await run('policies.rollback', { policyType: 'ewc', toVersion: 1 })).toMatchObject({
    policy: { policyVersion: 3, parameters, fisherDiagonal: { numFloats: 2 } },
  });
  const { versions } = (await run('policies.history', { policyType: 'ewc' })) as { versions: object[] };
  expect(versions).toHaveLength(3);
  await expect(run('policies.get', { policyType: 'router', name: 'other' })).rejects.toMatchObject({
    code: 'not_found',
  });
});

test('[OP13] another master key is passed on as bytes or as a passphrase, one of them, and no refusal shows it', async () => {
  const { run, rotated } = await createTestMemory();
  const key = new Uint8Array(32).map((_, i) => 7 * i);
  const base64 = Buffer.from(key).toString('base64');
  expect(await run('memory.rotate-key', { key: base64 })).toEqual({ isRotated: true });
  await run('memory.rotate-key', { key: base64.slice(0, -1) });
  await run('memory.rotate-key', { passphrase: 'öpen' });
  expect(rotated).toEqual([{ key }, { key }, { passphrase: 'öpen' }]);
  for (const input of [
    {},
    { key: base64, passphrase: 'x' },
    { key: `${base64}x` },
    { key: 'secretsecret' },
    { passphrase: '' },
  ]) {
    const error = await run('memory.rotate-key', input).catch((reason: unknown) => reason as Error);
    expect(error).toMatchObject({ code: 'invalid_option' });
    expect((error as Error).message).not.toMatch(/secretsecret|AAcOFR/);
  }
  expect(rotated).toHaveLength(3);
});

test('[OP11] segments of an erased tenant are deleted, those of others stay', async () => {
  const { run, memory, audit, services, archive } = await createTestMemory();
  for (const tenant of ['acme', 'other']) await audit([{}, {}], tenant);
  services.timeMs += 8 * 86_400_000;
  for (const tenant of ['acme', 'other']) await memory.audit.retain(tenant);
  expect(archive.files.size).toBe(2);
  await run('tenants.erase', { confirm: 'acme' });
  expect(archive.files.size).toBe(1);
  expect(await run('audit.verify', {}, 'other')).toMatchObject({ isIntact: true, numArchived: 2 });
});

test('[OP11] a tenant is erased only by its name, and alone', async () => {
  const { run } = await createTestMemory();
  await run('memory.add', { text: 'mine' });
  await run('memory.add', { text: 'yours' }, 'other');
  await expect(run('tenants.erase', { confirm: 'other' })).rejects.toMatchObject({ data: { option: 'confirm' } });
  expect(await run('tenants.erase', { confirm: 'acme' })).toEqual({
    tenant: 'acme',
    userId: null,
    requestId: null,
    isErased: true,
    parts: [
      { name: 'turns that wait for the disk', numFound: 0, numLeft: 0 },
      { name: 'memory', numFound: 2, numLeft: 0 }, // the text, and the name in the list of tenants
    ],
  });
  expect(await run('memory.export')).toEqual({ records: [], next: null });
  expect(((await run('memory.export', {}, 'other')) as Page).records).toHaveLength(1);
});
