import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { termsOf } from '../lexical/terms.ts';
import type { MemoryStore } from '../types.ts';
import { expectRefusal, idOf, recordOf, vectorOf, type OpenStore } from './store-setup.contract.ts';

const WORDS = ['amber', 'basin', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'haven', 'islet', 'jetty', 'knoll', 'ledge']; // prettier-ignore

/** BM25 as it is written in textbooks. */
function scan(texts: ReadonlyMap<string, string>, query: string): { id: string; score: number }[] {
  const lists = new Map([...texts].map(([id, text]) => [id, termsOf(text)]));
  const average = [...lists.values()].reduce((sum, { length }) => sum + length, 0) / lists.size;
  const idf = (term: string): number => {
    const n = [...lists.values()].filter((list) => list.includes(term)).length;
    return Math.log(1 + (lists.size - n + 0.5) / (n + 0.5));
  };
  const terms = [...new Set(termsOf(query))];
  const most = terms.reduce((sum, term) => sum + idf(term) * 2.2, 0);
  const hits = [...lists].map(([id, list]) => ({
    id,
    score: terms.reduce((sum, term) => {
      const f = list.filter((other) => other === term).length;
      return sum + (idf(term) * f * 2.2) / (f + 1.2 * (0.25 + (0.75 * list.length) / average)) / most;
    }, 0),
  }));
  return hits.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
}

export function testMatch(open: OpenStore): void {
  const match = async (store: MemoryStore, text: string, change: object = {}) =>
    store.match('alpha', { kinds: ['fact'], text, k: 10, ...change });
  const ids = async (...given: Parameters<typeof match>): Promise<string[]> =>
    (await match(...given)).map(({ record }) => record.id);

  test('[MS35] the best are those of a scan, with and without a filter', async () => {
    const { store, reopen } = await open();
    const random = createRandom(5);
    const word = (): string => WORDS[Math.floor(WORDS.length * random.next() ** 2)]!;
    const records = Array.from({ length: 120 }, (_, i) =>
      recordOf(i, {
        kind: i % 3 === 0 ? 'concept' : 'fact',
        fields: { quality: i % 10 },
        body: { text: Array.from({ length: 3 + (i % 17) }, word).join(' ') },
      }),
    );
    await store.put(records);
    const check = async (current: MemoryStore, text: string): Promise<void> => {
      for (const kinds of [['fact'], ['fact', 'concept']] as const) {
        const of = records.filter(({ kind }) => (kinds as readonly string[]).includes(kind));
        const all = scan(new Map(of.map(({ id, body }) => [id, (body as { text: string }).text])), text);
        const good = new Set(of.filter(({ fields }) => (fields['quality'] as number) >= 5).map(({ id }) => id));
        const filter = { fields: [{ field: 'quality', is: '>=', value: 5 }] } as const;
        for (const [expected, found] of [
          [all, await current.match('alpha', { kinds, text, k: 12 })],
          [all.filter(({ id }) => good.has(id)), await current.match('alpha', { kinds, text, k: 12, filter })],
        ] as const) {
          found.forEach(({ score }, i) => expect(score).toBeCloseTo(expected[i]!.score, 9));
          expect(found).toHaveLength(Math.min(12, expected.length));
          const scores = new Map(expected.map(({ id, score }) => [id, score]));
          for (const { record, score } of found) expect(score).toBeCloseTo(scores.get(record.id)!, 9);
        }
      }
    };
    const queries = ['amber', 'ledge knoll', 'Amber, basin and GROVE?', 'jetty jetty islet nowhere'];
    for (const text of queries) await check(store, text);
    if (reopen === null) return;
    const again = await reopen();
    for (const text of queries) await check(again, text);
  });

  test('[MS35] words of the context count half', async () => {
    const { store } = await open();
    await store.put([
      recordOf(1, { body: { text: 'amber basin' } }),
      recordOf(2, { body: { text: 'cedar delta' } }),
      recordOf(3, { body: { text: 'amber cedar' } }),
    ]);
    expect(await ids(store, 'amber', { context: 'Cedar amber' })).toEqual([idOf(3), idOf(1), idOf(2)]);
    const scores = (await match(store, 'amber', { context: 'cedar' })).map(({ score }) => score);
    expect(scores[1]).toBeCloseTo(2 * scores[2]!, 9);
    expect(scores[0]).toBeCloseTo(scores[1]! + scores[2]!, 9);
  });

  test('[MS35] a text that is replaced, deleted or erased is found as it is now', async () => {
    const { store, reopen } = await open();
    const put = (i: number, text: string) => store.put([recordOf(i, { body: { text } })]);
    await put(1, 'the ferry leaves from the old harbour');
    await put(2, 'the library opens at nine');
    expect(await ids(store, 'harbour')).toEqual([idOf(1)]);
    await put(1, 'the ferry leaves from the new terminal');
    await put(3, 'a harbour seal');
    expect([await ids(store, 'harbour'), await ids(store, 'terminal')]).toEqual([[idOf(3)], [idOf(1)]]);
    await store.delete('alpha', [idOf(3)]);
    expect(await ids(store, 'harbour seal')).toEqual([]);
    let current = store;
    if (reopen !== null) {
      current = await reopen();
      expect([await ids(current, 'harbour'), await ids(current, 'terminals')]).toEqual([[], [idOf(1)]]);
    }
    await current.checkIntegrity();
    await current.eraseTenant('alpha');
    expect(await ids(current, 'library')).toEqual([]);
    await current.put([recordOf(2, { body: { text: 'the library moved' } })]);
    expect(await ids(current, 'library opens')).toEqual([idOf(2)]);
    await current.sweepExpired(1, 1);
    await current.checkIntegrity();
  });

  test('[MS35] a filter that excludes a word sees later writes and deletions', async () => {
    const { store } = await open();
    const put = (i: number, source: string) => store.put([recordOf(i, { fields: { source }, body: { text: 'rhubarb' }, vector: vectorOf(i, 1), space: 's' })]); // prettier-ignore
    const filter = { fields: [{ field: 'source', is: '!=', value: 'old' }] } as const;
    const found = async (): Promise<string[][]> => [
      (await ids(store, 'rhubarb', { filter })).sort(),
      (await store.nearest('alpha', { kinds: ['fact'], vector: vectorOf(1, 1), space: 's', k: 10, filter })).map(({ record }) => record.id).sort(), // prettier-ignore
    ];
    await store.put([recordOf(9, { kind: 'concept' })]);
    expect(await found()).toEqual([[], []]);
    await put(1, 'new');
    await put(2, 'old');
    expect(await found()).toEqual([[idOf(1)], [idOf(1)]]);
    await put(1, 'old');
    await put(2, 'new');
    expect(await found()).toEqual([[idOf(2)], [idOf(2)]]);
    await store.delete('alpha', [idOf(2)]);
    expect(await found()).toEqual([[], []]);
  });

  test('[MS35] tenants, kinds and texts of each kind', async () => {
    const { store } = await open();
    await store.put([
      recordOf(1, { body: { text: 'rhubarb' } }),
      recordOf(2, { tenant: 'beta', body: { text: 'rhubarb pie' } }),
      recordOf(3, { kind: 'qa-pair', body: { query: 'what grows?', answer: 'rhubarb' } }),
      recordOf(4, { kind: 'state', body: { text: 'rhubarb' } }),
      recordOf(6, { kind: 'trajectory', body: { query: 'rhubarb' } }),
      recordOf(5, { kind: 'document', body: { text: 'Ä 図書館 は 東京 にある。' } }),
    ]);
    expect(await ids(store, 'rhubarb')).toEqual([idOf(1)]);
    expect((await ids(store, 'rhubarb', { kinds: ['fact', 'qa-pair', 'state', 'trajectory'] })).sort()).toEqual([
      idOf(1),
      idOf(3),
    ]);
    expect(await ids(store, '図書館', { kinds: ['document'] })).toEqual([idOf(5)]);
    expect(await ids(store, '東大', { kinds: ['document'] })).toEqual([]);
    const [hit] = await store.match('beta', { kinds: ['fact'], text: 'pie', k: 1 });
    expect(hit).toMatchObject({ record: { id: idOf(2), tenant: 'beta', body: { text: 'rhubarb pie' } } });
  });

  test('[MS35] returns vectors unless they are not wanted, and refuses bad queries', async () => {
    const { store } = await open();
    await store.put([recordOf(1, { body: { text: 'rhubarb' }, vector: vectorOf(3, 4), space: 's' })]);
    expect((await match(store, 'rhubarb'))[0]!.record.vector).toEqual(vectorOf(3, 4));
    expect((await match(store, 'rhubarb', { withVectors: false }))[0]!.record).toMatchObject({ vector: null, space: 's' }); // prettier-ignore
    expect(await match(store, '?! …')).toEqual([]);
    await expectRefusal(match(store, ''), 'invalid_option', 'text must be a text and not empty');
    await expectRefusal(match(store, 'a', { k: 0 }), 'invalid_option', '"k" must be an integer from 1 to 1000');
    await expectRefusal(match(store, 'a', { vector: vectorOf(1) }), 'invalid_option', 'unknown option "vector"');
    const unknown = { filter: { fields: [{ field: 'nope', is: '=', value: 1 }] } };
    await expectRefusal(match(store, 'a', unknown), 'invalid_option', 'unknown field "nope"');
  });
}
