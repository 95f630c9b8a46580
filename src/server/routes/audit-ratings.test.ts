// Feedback, found through the audit log, which itself never changes.
import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createTestLearning, type TestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { createKeyStore } from '../keys/key-store.ts';

let desk: TestLearning;
let server: TestServer;
const tokens = new Map<string, string>();

beforeEach(async () => {
  const { model } = await createToyRuntime();
  desk = await createTestLearning({}, 'toy');
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  for (const [name, tenant, scope] of [
    ['alice', 'alice', 'inference'],
    ['bob', 'bob', 'inference'],
    ['root', 'root', 'admin'],
  ] as const) {
    tokens.set(name, (await keys.create({ name, tenant, scopes: [scope] })).token);
  }
  const { memory, learning } = desk;
  server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, memory, learning });
});

async function post<T = Record<string, unknown>>(path: string, body: unknown, who = 'alice'): Promise<T> {
  const response = await server.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${tokens.get(who)!}` },
      body: JSON.stringify(body),
    }),
  );
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

async function ask(content: string, who = 'alice'): Promise<string> {
  const { id } = await post<{ id: string }>('/v1/chat/completions', { model: 'toy', messages: [{ role: 'user', content }], max_tokens: 3 }, who); // prettier-ignore
  await desk.learning.settle();
  await desk.memory.audit.flush();
  return id.replace('chatcmpl-', '');
}
const rate = (requestId: string, words: object, who = 'alice') =>
  post('/v1/feedback', { request_id: requestId, ...words }, who);

interface Page {
  readonly entries: readonly { readonly rating: object | null; readonly entry: { requestId: string; quality: null } }[];
  readonly next: string | null;
  readonly isComplete: boolean;
}
const search = (query: object, who?: string) => post<Page>('/admin/memory/audit/search', query, who);
const idsOf = ({ entries }: Page): string[] => entries.map(({ entry }) => entry.requestId);

describe('[WL20] feedback in the audit log', () => {
  test('is shown with its entry and searchable, without changing the hash chain', async () => {
    const [bad, good, corrected, unrated] = [await ask('one'), await ask('two'), await ask('three'), await ask('four')]; // prettier-ignore
    const before = await post<{ head: { hash: string } }>('/admin/memory/audit/verify', {});
    await rate(bad, { score: 0.1 });
    await rate(good, { thumbs: 'up' });
    await rate(corrected, { correction: 'other words' });
    expect(idsOf(await search({ maxQuality: 0.5 }))).toEqual([corrected, bad]);
    expect(idsOf(await search({ minQuality: 0.05, maxQuality: 0.5 }))).toEqual([bad]);
    expect(idsOf(await search({ minQuality: 0.9 }))).toEqual([good]);
    expect(idsOf(await search({ minQuality: 0.2, maxQuality: 0.8 }))).toEqual([]);
    expect(idsOf(await search({ maxQuality: 0.5, text: 'one' }))).toEqual([bad]);
    expect(idsOf(await search({ maxQuality: 0.5, similarTo: 'three' }))[0]).toBe(corrected);
    const all = await search({});
    expect(all.entries.map(({ rating, entry }) => [entry.requestId, entry.quality, rating])).toEqual([
      [unrated, null, null],
      [corrected, null, { quality: 0, verdict: 'failure' }],
      [good, null, { quality: 1, verdict: 'success' }],
      [bad, null, { quality: 0.1, verdict: 'failure' }],
    ]);
    // The last feedback counts.
    await rate(bad, { score: 0.95 });
    expect(idsOf(await search({ maxQuality: 0.5 }))).toEqual([corrected]);
    expect(await post('/admin/memory/audit/verify', {})).toMatchObject({ isIntact: true, brokenAt: null, head: before.head }); // prettier-ignore
    expect(await post('/admin/memory/audit/stats', {})).toMatchObject({ count: 4, numRated: 3, meanQuality: 0.65 });
    expect(await post('/admin/memory/audit/stats', { maxQuality: 0.5 })).toMatchObject({ count: 1, meanQuality: 0 });
  });

  test('belongs to its tenant, and is deleted with the request or the tenant', async () => {
    const [first, second] = [await ask('one'), await ask('two')];
    await rate(first, { score: 0 });
    await rate(second, { score: 0 });
    expect(idsOf(await search({ maxQuality: 1 }, 'bob'))).toEqual([]);
    await post('/admin/learning/forget', { requestId: first });
    expect(idsOf(await search({ maxQuality: 1 }))).toEqual([second]);
    expect((await search({ requestId: first })).entries).toMatchObject([{ rating: null }]);
    await post('/admin/memory/tenants/erase?tenant=alice', { confirm: 'alice' }, 'root');
    expect(idsOf(await search({ maxQuality: 1 }))).toEqual([]);
    const left = await desk.store.find('alice', { kinds: ['trajectory'], order: 'newest', limit: 10 });
    expect(left.records).toEqual([]);
  });

  test('is searched in pages, even with more rated entries than one query can list', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) {
      ids.push(await ask(`question ${i}`));
      await rate(ids[i]!, { score: i % 2 });
    }
    async function pages(): Promise<string[]> {
      const found: string[] = [];
      for (let after: string | undefined; ;) {
        const page = await search({ maxQuality: 0.5, limit: 2, ...(after === undefined ? {} : { after }) });
        found.push(...idsOf(page));
        if (page.next === null) return found;
        after = page.next;
      }
    }
    const wanted = [ids[4], ids[2], ids[0]];
    expect(await pages()).toEqual(wanted);
    // Rated requests without an entry in the log: more than one query can list.
    for (let i = 0; i < 501; i++) {
      const id = await desk.add({}, 'alice');
      await desk.learning.trajectories.rate('alice', { requestId: id, score: 0 });
    }
    expect(await pages()).toEqual(wanted);
    const scanned = await search({ maxQuality: 0.5, maxScanned: 2 });
    expect([idsOf(scanned), scanned.isComplete]).toEqual([[ids[4]], false]);
    expect(idsOf(await search({ maxQuality: 0.5, similarTo: 'question' })).toSorted()).toEqual(wanted.toSorted()); // prettier-ignore
  });
});
