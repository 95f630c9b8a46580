import { array, assert, constantFrom, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Embedder } from '../embedder-types.ts';
import { createMemoryGraph } from '../graph/graph.ts';
import { DEFAULT_POLICIES } from '../policies/defaults.ts';
import { createPolicyMemory } from '../policies/policies.ts';
import { UUID } from '../schemas/fixtures.contract.ts';
import { nodeToRecord, type MemoryNode } from '../schemas/node.ts';
import { createSessionIndex } from '../sessions/sessions.ts';
import { createTestServices, createTestStore } from '../test-store.contract.ts';
import { createManualSchedule, auditInput } from '../audit/harness.contract.ts';
import { openAuditLog } from '../audit/index.ts';
import { estimateJaccard, minHash, shinglesOf } from './min-hash.ts';
import { packContext } from './pack.ts';
import { createMemorySearch } from './search.ts';
import { AUDIT_KIND } from '../types.ts';

const T = 'acme';
const DAY_MS = 86_400_000;
const WORDS = ['card', 'loan', 'lost', 'rate', 'late', 'fee', 'app', 'pin'];

/** Counts of a few words: near is what talks about the same. */
const embedder: Embedder = {
  fingerprint: 'words-8',
  dim: 8,
  embed: async (text) => Float32Array.from(WORDS, (word) => 0.01 + text.toLowerCase().split(word).length - 1),
};

async function setUp() {
  const services = createTestServices();
  const store = createTestStore(services);
  const graph = createMemoryGraph(store, services);
  const memory = createMemorySearch({ store, services, graph, embedder });
  const add = async (text: string, changes: Partial<MemoryNode> = {}): Promise<string> => {
    const id = services.newId();
    const node = {
      id,
      kind: 'fact' as const,
      text,
      source: null,
      topic: null,
      quality: null,
      metadata: {},
      expiresMs: null,
    };
    await store.put([
      nodeToRecord({ ...node, embedding: await embedder.embed(text), space: embedder.fingerprint, ...changes }, T),
    ]);
    return id;
  };
  return { services, store, graph, memory, add };
}
const texts = ({ results }: { results: readonly { text: string }[] }) => results.map(({ text }) => text);

test('[SE12] a follow-up question finds the subject of the question before it, by words and meaning', async () => {
  const { memory, add } = await setUp();
  for (let i = 0; i < 30; i++) await add(`the app has the fee ${i}`);
  const wanted = await add('Zanzibar loan: fees of a low rate');
  const first = async (query: object) => (await memory.search(T, { text: 'and what is the fee?', k: 1, ...query })).results[0]; // prettier-ignore
  expect((await first({}))!.record.id).not.toBe(wanted);
  const result = await first({ turns: ['Who has the Zanzibar loan?'] });
  expect(result).toMatchObject({ record: { id: wanted } });
});

test('[SE13] a step reaches records that share a rare name with the best match, and no others', async () => {
  const { memory, add } = await setUp();
  for (let i = 0; i < 40; i++) await add(`In the morning the guest of room ${i} eats bread.`);
  await add("Ana's parrot is called Rex.");
  const wanted = await add('Seeds and grapes are all that Rex touches.');
  const other = await add('Seeds and grapes are all that Max touches.');
  const ids = async (expandHops: number, filter: readonly object[] = []) =>
    (await memory.search(T, { text: "What does Ana's parrot eat?", k: 5, expandHops, filter: filter as [] })).results.map(({ record }) => record.id); // prettier-ignore
  expect(await ids(0)).not.toContain(wanted);
  const found = await ids(1);
  expect(found).toContain(wanted);
  expect(found).not.toContain(other);
  expect(new Set(found).size).toBe(found.length);
  expect(await ids(1, [{ field: 'topic', is: '=', value: 'hotel' }])).toEqual([]);
  // A name that many records have does not tell which belong together.
  for (let i = 0; i < 9; i++) await add(`Tickets for Rex, part ${i}.`);
  expect(await ids(1)).not.toContain(wanted);
});

describe('[SE10] words and meaning', () => {
  test('finds by words what the vectors miss, and says why', async () => {
    const { memory, add } = await setUp();
    for (let i = 0; i < 60; i++) await add(`the card of the app has a fee of ${i}`);
    const wanted = await add('Zanzibar opens at nine', { embedding: Float32Array.of(0, 0, 0, 0, 0, 0, 0, 1) });
    const query = { text: 'which card opens Zanzibar?', k: 5 };
    const vector = await embedder.embed(query.text);
    const near = await memory.search(T, { vector, k: 5 });
    expect(near.results.map(({ record }) => record.id)).not.toContain(wanted);
    for (const minSimilarity of [-1, 0.9]) {
      const [best] = (await memory.search(T, { ...query, minSimilarity })).results;
      expect(best).toMatchObject({ record: { id: wanted }, similarity: null, hops: 0 });
      expect(best!.lexical).toBeGreaterThan(0.25);
    }
    const [second] = (await memory.search(T, { text: 'fee', k: 5 })).results;
    expect([second!.similarity !== null, second!.lexical !== null]).toEqual([true, true]);
  });
  test('a weak match of words does not replace similarity', async () => {
    const { memory, add } = await setUp();
    await add('a loan is a loan', { embedding: Float32Array.of(0, 0, 0, 0, 0, 0, 0, 1) });
    for (let i = 0; i < 30; i++) await add(`a quiet street number ${i}`);
    const query = { text: 'is the lost pin of this card a rare thing?', minSimilarity: 0.99 };
    expect((await memory.search(T, query)).results).toEqual([]);
  });
  test('searches by words without an embedder', async () => {
    const { services, store, graph, add } = await setUp();
    await add('the ferry leaves at six', { embedding: null, space: null });
    await add('the library opens at nine', { embedding: null, space: null });
    const memory = createMemorySearch({ store, services, graph, embedder: null });
    const found = await memory.search(T, { text: 'When does the library open?', minSimilarity: 0.2 });
    expect(texts(found)[0]).toBe('the library opens at nine');
    expect(found.results[0]).toMatchObject({ similarity: null, lexical: expect.any(Number) as number });
  });
});

describe('[SE11] unrated answers of the model', () => {
  test('are left out unless their kind is named, and then come last', async () => {
    const { memory, add, store, services } = await setUp();
    const put = async (answer: string, quality: number | null, sessionId: string | null) => {
      const fields = { sessionId, quality, source: sessionId === null ? 'correction' : 'session', topic: null };
      const vector = await embedder.embed('library app');
      await store.put([{ id: services.newId(), tenant: T, kind: 'qa-pair', expiresMs: null, fields, body: { query: 'When does the library open?', answer }, vector, space: embedder.fingerprint }]); // prettier-ignore
    };
    for (let i = 0; i < 50; i++) await put(`It opens at ${i} past three, as I said before.`, null, 's');
    await put('Never, said a bad answer.', 0.1, 's');
    await put('At nine, said a good answer.', 0.9, 's');
    await put('At nine, sharp.', 1, null);
    await add('The town library is open from nine to five.', { kind: 'document' });
    const query = { text: 'When does the library open?', k: 5 };
    const good = ['At nine, said a good answer.', 'At nine, sharp.', 'The town library is open from nine to five.'];
    const answersOf = (found: Parameters<typeof texts>[0]) => texts(found).map((text) => text.split('\n').at(-1));
    expect(answersOf(await memory.search(T, query)).sort()).toEqual(good);
    const named = await memory.search(T, { ...query, kinds: ['document', 'qa-pair'] });
    expect(answersOf(named).slice(0, 3).sort()).toEqual(good);
    expect(good).not.toContain(answersOf(named)[3]);
    const trusted = await memory.search(T, { ...query, kinds: ['document', 'qa-pair'], onlyTrusted: true });
    expect(answersOf(trusted).sort()).toEqual(good);
  });
  test('leave room for the trusted ones, and for each other behind copies', async () => {
    const { memory, store, services } = await setUp();
    const put = async (answer: string, quality: number | null, about: string) => {
      const fields = { sessionId: 's', quality, source: 'session', topic: null };
      await store.put([{ id: services.newId(), tenant: T, kind: 'qa-pair', expiresMs: null, fields, body: { query: '', answer }, vector: await embedder.embed(about), space: embedder.fingerprint }]); // prettier-ignore
    };
    for (let i = 0; i < 20; i++) await put('At ten.', null, 'card');
    await put('At noon.', null, 'card app');
    const query = { vector: await embedder.embed('card'), kinds: ['qa-pair' as const] };
    expect(texts(await memory.search(T, { ...query, k: 2 }))).toEqual(['At ten.', 'At noon.']);
    await put('At nine.', 1, 'card loan pin');
    expect(texts(await memory.search(T, { ...query, k: 1 }))).toEqual(['At nine.']);
  });
  test('without words are no copies of each other', async () => {
    const { memory, store, services } = await setUp();
    const vector = await embedder.embed('card');
    for (let i = 0; i < 2; i++) await store.put([{ id: services.newId(), tenant: T, kind: 'qa-pair', expiresMs: null, fields: {}, body: {}, vector, space: embedder.fingerprint }]); // prettier-ignore
    expect(texts(await memory.search(T, { vector }))).toEqual(['', '']);
  });
});

describe('[SE1] one search over all kinds', () => {
  test('duplicates and expired records do not hide further results', async () => {
    const { services, memory, add } = await setUp();
    for (let i = 0; i < 70; i++) await add('the card was lost');
    for (let i = 0; i < 70; i++) await add(`lost card number ${i}`, { expiresMs: services.now() + 1 });
    await add('a loan has a rate and a fee');
    await add('the app wants a pin');
    services.timeMs += 1;
    const found = await memory.search(T, { text: 'lost card', k: 3 });
    expect(texts(found).sort()).toEqual(['a loan has a rate and a fee', 'the app wants a pin', 'the card was lost']);
    expect(texts(await memory.search(T, { text: 'lost card', k: 3, minSimilarity: 0.9 }))).toEqual([
      'the card was lost',
    ]);
  });
  test('results come with vectors only where these are asked for', async () => {
    const { memory, add, graph } = await setUp();
    const [near, linked] = [await add('the card was lost'), await add('a loan has a rate')];
    await graph.link(T, [{ from: near, to: linked, relation: 'same-topic', weight: 1, confidence: 1 }]);
    const query = { text: 'lost card', k: 2, minSimilarity: 0.9, expandHops: 1 };
    const light = await memory.search(T, query);
    const whole = await memory.search(T, { ...query, withVectors: true });
    expect(light.results.map(({ hops, record: { vector } }) => [hops, vector])).toEqual([[0, null], [1, null]]); // prettier-ignore
    expect(whole.results.map(({ record: { vector } }) => vector?.length)).toEqual([8, 8]);
    expect(whole.results.map(({ similarity }) => similarity)).toEqual(
      light.results.map(({ similarity }) => similarity),
    );
  });
  test('requests like this one that failed last week', async () => {
    const { services, store, memory, add } = await setUp();
    const log = await openAuditLog({
      store,
      services,
      schedule: createManualSchedule().schedule,
      log: { numSimilar: 0 },
    });
    const write = async (query: string, isFailed: boolean) => {
      const error = isFailed ? { code: 'overloaded', message: 'queue full', isRetryable: true } : null;
      log.enqueue(
        T,
        auditInput({
          query,
          response: '',
          error,
          queryEmbedding: await embedder.embed(query),
          space: embedder.fingerprint,
        }),
      );
      await log.flush();
    };
    await write('lost card, three weeks ago', true);
    services.timeMs += 21 * DAY_MS;
    await write('lost card yesterday', true);
    await write('lost card and all was well', false);
    await write('what is the loan rate', true);
    await add('a fact about a lost card');
    const nowMs = services.timeMs;
    const found = await memory.search(T, {
      text: 'my card is lost',
      kinds: [AUDIT_KIND],
      filter: [{ field: 'hasError', is: '=', value: true }],
      fromMs: nowMs - 7 * DAY_MS,
      minSimilarity: 0.5,
    });
    expect(texts(found)).toEqual(['lost card yesterday\nfailed: queue full']);
  });
  test('sessions about something', async () => {
    const { services, store, memory, add } = await setUp();
    const sessions = createSessionIndex(store, services);
    const about = async (text: string) => ({
      contextEmbedding: await embedder.embed(text),
      space: embedder.fingerprint,
      metadata: { title: text },
    });
    await sessions.touch(T, 's1', await about('loan rate'));
    await sessions.touch(T, 's2', await about('lost card'));
    await add('loan rate facts');
    expect(texts(await memory.search(T, { text: 'loan', kinds: ['session'], k: 1 }))).toEqual(['loan rate']);
  });
  test('policies near this context', async () => {
    const { services, store, memory } = await setUp();
    const policies = createPolicyMemory(store, services);
    for (const reason of ['late fee', 'app pin']) {
      await policies.put(T, {
        policyType: 'ewc',
        name: reason,
        parameters: DEFAULT_POLICIES.ewc.parameters,
        confidence: 0.8,
        source: 'deep-loop',
        reason,
        embedding: await embedder.embed(reason),
        space: embedder.fingerprint,
      });
    }
    const filter = [{ field: 'isCurrent', is: '=', value: true }] as const;
    expect(
      texts(await memory.search(T, { text: 'a fee came late', kinds: ['policy'], k: 1, filter: [...filter] })),
    ).toEqual(['ewc policy late fee: late fee']);
  });
  test('by vector, over all kinds at once, and never between spaces', async () => {
    const { memory, add } = await setUp();
    await add('card', { kind: 'document' });
    await add('loan', { kind: 'concept' });
    await add('pin', { space: 'another' });
    const vector = await embedder.embed('loan');
    expect(texts(await memory.search(T, { vector }))).toEqual(['loan', 'card']);
    expect(texts(await memory.search(T, { vector, space: 'another' }))).toEqual(['pin']);
    await expect(memory.search(T, { text: 'x', space: 'another' })).rejects.toThrow(/not another; pass a vector/);
    expect(texts(await memory.search('other', { vector }))).toEqual([]);
  });
  test('refuses invalid input', async () => {
    const { memory } = await setUp();
    const bad: object[] = [
      {},
      { text: 'a', k: 0 },
      { text: 'a', k: 1_000_000 },
      { text: 'a', kinds: ['state'] },
      { text: 'a', kinds: ['animal'] },
      { text: 'a', colour: 1 },
      { text: 'a', filter: [{ field: 'colour', is: '=', value: 1 }] },
      { vector: Float32Array.of(NaN) },
      { text: 'a', expandHops: 9 },
      { text: 'a', filter: [null] },
      { text: 'a', filter: ['topic'] },
    ];
    for (const query of bad) {
      await expect(memory.search(T, query)).rejects.toThrow(expect.objectContaining({ code: 'invalid_option' }));
    }
  });
  test('says which space the embedder has', async () => {
    const { services, store, graph, memory } = await setUp();
    const blind = createMemorySearch({ store, services, graph, embedder: null });
    const query = { text: 'x', space: 'another' };
    await expect(memory.search(T, query)).rejects.toThrow('the embedder has the space words-8, not another');
    await expect(blind.search(T, query)).rejects.toThrow('the embedder has the space none, not another');
  });
  test('finds records of a time, from its first millisecond to before its last', async () => {
    const { services, memory, add } = await setUp();
    const startMs = services.timeMs;
    for (const word of ['card', 'loan', 'pin']) {
      await add(word);
      services.timeMs += 10;
    }
    const found = async (query: object) => texts(await memory.search(T, { text: 'app', ...query })).sort();
    expect(await found({ fromMs: startMs + 10 })).toEqual(['loan', 'pin']);
    expect(await found({ toMs: startMs + 10 })).toEqual(['card']);
    expect(await found({ fromMs: startMs + 10, toMs: startMs + 20 })).toEqual(['loan']);
  });
  test('reads few records where their order is known, and 64 where it is not', async () => {
    const { memory, store } = await setUp();
    const read: number[] = [];
    store.onCall = (operation, query) => {
      if (operation === 'nearest') read.push((query as { k: number }).k);
    };
    for (const query of [{ k: 1 }, { k: 30 }, { k: 100 }, { k: 1, expandHops: 1 }, { k: 5, numCandidates: 3 }]) {
      await memory.search(T, { text: 'card', ...query });
    }
    expect(read).toEqual([4, 64, 100, 64, 5]);
  });
  test('reads on behind copies, at most the 1000 best', async () => {
    const { memory, add, store } = await setUp();
    for (let i = 0; i < 300; i++) await add('the card was lost');
    await add('the loan is late');
    const read: number[] = [];
    store.onCall = (operation, query) => {
      if (operation === 'nearest') read.push((query as { k: number }).k);
    };
    const found = await memory.search(T, { text: 'lost card', k: 2, numCandidates: 300 });
    expect(texts(found)).toEqual(['the card was lost', 'the loan is late']);
    expect([found.numDuplicates, read]).toEqual([299, [300, 1000]]);
  });
  test('reads on while the furthest record is as near as the least similarity', async () => {
    const { memory, add } = await setUp();
    const [half, vector] = [Float32Array.of(1, 1, 1, 1, 0, 0, 0, 0), Float32Array.of(1, 0, 0, 0, 0, 0, 0, 0)];
    for (const text of ['copy', 'copy', 'other']) await add(text, { embedding: half });
    const query = { vector, k: 2, numCandidates: 2 };
    expect(texts(await memory.search(T, { ...query, minSimilarity: 0.5 }))).toEqual(['copy', 'other']);
    expect(texts(await memory.search(T, { ...query, minSimilarity: 0.51 }))).toEqual([]);
  });
  test('reads on behind copies that match few of the words', async () => {
    const { services, store, graph, add } = await setUp();
    const bare = { embedding: null, space: null };
    for (let i = 0; i < 12; i++) await add('a fee', bare);
    await add('some fee of a town by the sea', bare);
    const memory = createMemorySearch({ store, services, graph, embedder: null });
    const found = await memory.search(T, { text: 'fee, Zanzibar, moonlight, tigers, rivers, violets, glaciers', k: 2 });
    expect(texts(found)).toEqual(['a fee', 'some fee of a town by the sea']);
    expect(found.results[0]!.lexical).toBeLessThan(0.25);
  });
  test('the words of a follow-up question are those of the question before it, too', async () => {
    const { services, store, graph, add } = await setUp();
    const bare = { embedding: null, space: null };
    await add('The Corinth canal has steep walls.', bare);
    const memory = createMemorySearch({ store, services, graph, embedder: null });
    const turns = ['Who built the Corinth canal?'];
    expect(texts(await memory.search(T, { text: 'and how deep?', turns }))).toHaveLength(1);
    expect(texts(await memory.search(T, { text: 'and how deep?' }))).toHaveLength(0);
    expect(texts(await memory.search(T, { vector: await embedder.embed('card'), turns }))).toHaveLength(0);
  });
  test('does not find expired records', async () => {
    const { services, memory, add } = await setUp();
    await add('card', { expiresMs: services.timeMs + 5 });
    expect(texts(await memory.search(T, { text: 'card' }))).toEqual(['card']);
    services.timeMs += 5;
    expect(texts(await memory.search(T, { text: 'card' }))).toEqual([]);
  });
});

describe('[SE2] along the graph', () => {
  test('finds records linked to near ones, with the same conditions', async () => {
    const { graph, memory, add } = await setUp();
    const near = await add('lost card');
    const linked = await add('call the desk', { embedding: null, space: null, quality: 0.9 });
    const bad = await add('do nothing at all', { embedding: null, space: null, quality: 0.1 });
    const far = await add('the number of the desk', { embedding: null, space: null, quality: 0.9 });
    const edge = { relation: 'cites', weight: 1, confidence: 1 };
    await graph.link(T, [{ from: near, to: linked, ...edge }, { from: near, to: bad, ...edge }, { from: linked, to: far, ...edge }]); // prettier-ignore
    const query = { text: 'lost card' };
    expect(texts(await memory.search(T, query))).toEqual(['lost card']);
    const one = await memory.search(T, { ...query, expandHops: 1 });
    expect(one.results.map(({ text, hops, similarity }) => [text, hops, similarity === null])).toEqual([
      ['lost card', 0, false],
      ['call the desk', 1, true],
      ['do nothing at all', 1, true],
    ]);
    expect(one.results[1]!.score).toBeCloseTo(0.8 * one.results[0]!.score, 5);
    expect(texts(await memory.search(T, { ...query, expandHops: 2 })).length).toBe(4);
    const filter = [{ field: 'quality', is: '!=' as const, value: 0.1 }];
    expect(texts(await memory.search(T, { ...query, expandHops: 1, filter }))).toEqual(['lost card', 'call the desk']);
    expect(texts(await memory.search(T, { ...query, expandHops: 1, kinds: ['document'] }))).toEqual([]);
  });
});

test('[SE2] a linked record has its own similarity in the space of the query, and the better of two scores', async () => {
  const { services, store, graph, memory, add } = await setUp();
  const near = await add('card', { embedding: Float32Array.of(1, 0, 0, 0, 0, 0, 0, 0) });
  const half = Float32Array.of(1, 1, 1, 1, 0, 0, 0, 0);
  const linked = {
    strong: await add('one', { embedding: half }),
    weak: await add('two', { embedding: half }),
    spaced: await add('three', { embedding: half, space: 'another' }),
    bare: await add('four', { embedding: null, space: null }),
    expired: await add('five', { embedding: half, expiresMs: services.timeMs + 1 }),
  };
  const weights = { strong: 1, weak: 0.5, spaced: 0.5, bare: 0.5, expired: 1 };
  await graph.link(T, Object.entries(linked).map(([name, to]) => ({ from: near, to, relation: 'cites' as const, weight: weights[name as 'weak'], confidence: 1 }))); // prettier-ignore
  services.timeMs += 1;
  const query = { k: 1, numCandidates: 1, expandHops: 1 };
  const candidatesOf = ({ candidates }: Awaited<ReturnType<typeof memory.search>>) =>
    Object.fromEntries(candidates.map(({ id, similarity, score }) => [Object.entries(linked).find(([, one]) => one === id)?.[0] ?? 'near', [similarity, Math.round(1000 * score) / 1000]])); // prettier-ignore
  const vector = Float32Array.of(1, 0, 0, 0, 0, 0, 0, 0);
  expect(candidatesOf(await memory.search(T, { vector, ...query }))).toEqual({
    near: [1, 1],
    strong: [0.5, 0.8],
    weak: [0.5, 0.5],
    spaced: [null, 0.4],
    bare: [null, 0.4],
  });
  const blind = createMemorySearch({ store, services, graph, embedder: null });
  const found = candidatesOf(await blind.search(T, { text: 'card', ...query }));
  expect(found['strong']![0]).toBeNull();
});

test('[SE13] a record that shares a name has the bonus of 0.2 above what it has without', async () => {
  const { memory, add } = await setUp();
  for (let i = 0; i < 30; i++) await add(`In the morning the guest of room ${i} eats bread.`);
  const first = await add("Ana's parrot is called Rex.");
  const bare = await add('Seeds are all that Rex touches.', { embedding: null, space: null });
  const spaced = await add('Nuts are all that Rex opens.', { embedding: Float32Array.of(0, 0, 0, 0, 0, 0, 0, 1) });
  const text = "What does Ana's parrot eat?";
  const scoreOf = async (query: object) => {
    const { results } = await memory.search(T, { text, k: 50, ...query });
    return (id: string) => results.find(({ record }) => record.id === id)!;
  };
  const [plain, linked] = [await scoreOf({}), await scoreOf({ expandHops: 1 })];
  expect(linked(first).score).toBeCloseTo(plain(first).score + 0.2, 5);
  expect([linked(bare).score, linked(bare).hops, linked(bare).similarity]).toEqual([expect.closeTo(0.2), 1, null]);
  const far = linked(spaced);
  expect(far.score).toBeCloseTo(0.2 + far.similarity!, 5);
});

describe('ratings of answers', () => {
  test('move their sources, up to a tenth', async () => {
    const { services, store, graph, memory, add } = await setUp();
    const [good, other] = [await add('lost card'), await add('late fee')];
    const id = services.newId();
    const vector = await embedder.embed('lost card');
    await store.put([{ id, tenant: T, kind: 'trajectory', expiresMs: null, fields: {}, body: { query: 'lost card', response: 'x' }, vector, space: embedder.fingerprint }]); // prettier-ignore
    const scores = async () => {
      const { results } = await memory.search(T, { vector });
      return [good, other].map((one) => results.find(({ record }) => record.id === one)!.score);
    };
    const before = await scores();
    await graph.rate(T, { id, verdict: 'success', sources: [{ id: good, isUsed: true }, { id: other, isUsed: false }] }); // prettier-ignore
    const after = await scores();
    expect(after[0]! - before[0]!).toBeGreaterThan(0.01);
    expect(after[0]! - before[0]!).toBeLessThan(0.1 + 1e-9);
    expect(after[1]).toBe(before[1]);
  });
});

describe('[SE3] near-duplicates', () => {
  const long = 'a lost card must be reported at once to the desk so that nobody else can use it for anything at all';
  test('of a better result are left out, and others come in their place', async () => {
    const { memory, add } = await setUp();
    await add(long);
    await add(`${long}!`);
    await add(long.toUpperCase());
    await add('the card was lost by a man who never came back for it');
    const found = await memory.search(T, { text: 'lost card', k: 3 });
    expect([texts(found).length, found.numDuplicates]).toEqual([2, 2]);
    expect(texts(found).join()).toContain('man who never');
  });
  test('are estimated as near as 128 values can', () => {
    const words = array(constantFrom(...'abcdefghijklmnop'), { minLength: 3, maxLength: 60 });
    let sum = 0;
    let runs = 0;
    assert(
      property(words, words, (a, b) => {
        const [first, second] = [a.join(' '), [...a.slice(0, a.length >> 1), ...b].join(' ')];
        const [x, y] = [shinglesOf(first), shinglesOf(second)];
        const common = [...x].filter((shingle) => y.has(shingle)).length;
        const exact = common / (x.size + y.size - common);
        const error = Math.abs(estimateJaccard(minHash(first), minHash(second)) - exact);
        expect(error).toBeLessThan(0.25);
        sum += error;
        runs++;
      }),
      { seed: 7, numRuns: 300 },
    );
    expect(sum / runs).toBeLessThan(0.04);
  });
  test('have the hashes of FNV-1a with the finalizer of MurmurHash3', () => {
    // FNV-1a of "foobar" is 0xbf9cf968; the shingle is finalized twice, each value once more with a multiple of the golden ratio.
    expect([...shinglesOf('Foobar!')]).toEqual([0xed4b4e16]);
    expect([...minHash('foobar').subarray(0, 3)]).toEqual([0xca3c3a33, 0xf151039a, 0xed334af5]);
    expect([minHash('foobar').length, minHash('foobar')[127]]).toEqual([128, 0x5d02b01a]);
  });
  test('short and empty texts', () => {
    expect(estimateJaccard(minHash('card'), minHash('Card.'))).toBe(1);
    expect(estimateJaccard(minHash('card'), minHash('loan'))).toBeLessThan(0.1);
    expect(shinglesOf('').size).toBe(1);
  });
});

describe('[SE4] packing', () => {
  const items = ['aaaa', 'bbbbbbbbbbbb', 'cc'].map((text, index) => ({
    id: `id${index}`,
    kind: 'fact' as const,
    text,
  }));
  const pack = (tokenBudget: number) => packContext(items, { tokenBudget, countTokens: (text) => text.length });
  const whole = { position: null, isCut: false };
  test('numbers texts that fit, in order, and skips others', () => {
    expect(pack(20)).toEqual({
      text: '[1] aaaa\n[2] cc\n',
      sources: [
        { number: 1, id: 'id0', kind: 'fact', numTokens: 9, ...whole },
        { number: 2, id: 'id2', kind: 'fact', numTokens: 7, ...whole },
      ],
      numTokens: 16,
      numLeftOut: 1,
    });
    expect(pack(3)).toEqual({ text: '', sources: [], numTokens: 0, numLeftOut: 3 });
    expect(pack(33).numLeftOut).toBe(0);
    expect(pack(32).numLeftOut).toBe(1);
  });
  test('a text cannot pass for another source', () => {
    const text = 'a\n[2] b\r\n[3] c\u2028[4] d\r[5] e';
    const items = [text, 'f'].map((words) => ({ id: UUID, kind: 'fact' as const, text: words }));
    const packed = packContext(items, { tokenBudget: 1000, countTokens: (words) => words.length });
    expect(packed.text).toBe('[1]\n  a\n  [2] b\n  [3] c\n  [4] d\n  [5] e\n[2] f\n');
    expect(packed.numTokens).toBe(packed.text.length);
  });
  test('comes with a search that has a budget', async () => {
    const { memory, add } = await setUp();
    const id = await add('card');
    expect((await memory.search(T, { text: 'card' })).context).toBeNull();
    const { context } = await memory.search(T, { text: 'card', tokenBudget: 10 });
    expect(context).toMatchObject({ text: '[1] card\n', sources: [{ number: 1, id }] });
  });
});
