import { expect, test } from 'vitest';
import type { MatchQuery, MemoryRecord, MemoryStore } from '../types.ts';
import type { MemoryResult } from './fuse.ts';
import { followNames } from './linked-names.ts';

const seed = (text: string, lexical: number | null): MemoryResult =>
  ({ record: { id: text }, text, lexical }) as unknown as MemoryResult;

/** The questions to the store, and the names found where `numHits` records have each. */
async function follow(near: readonly MemoryResult[], numHits = 1, question = 'What does she eat?') {
  const asked: MatchQuery[] = [];
  const store = {
    match: async (_: string, query: MatchQuery) => {
      asked.push(query);
      return Array.from({ length: numHits }, (_, i) => ({
        record: { id: `${query.text}${i}`, kind: 'fact', fields: {}, body: { text: `about ${query.text}` } } as unknown as MemoryRecord,
        score: 1,
      })); // prettier-ignore
    },
  };
  const found = await followNames(store as unknown as MemoryStore, 't', near, { text: question, kinds: ['fact'], filter: { fields: [] } }); // prettier-ignore
  return { asked, names: asked.map(({ text }) => text), numFound: found.length };
}

test('[SE13] names of the best matches are asked for, with the question as context', async () => {
  const { asked } = await follow([seed('We saw Rex and Max today.', 1)]);
  const common = { context: 'What does she eat?', k: 9, withVectors: true, kinds: ['fact'], filter: { fields: [] } };
  expect(asked).toEqual([
    { text: 'Rex', ...common },
    { text: 'Max', ...common },
  ]);
});

test('[SE13] a name counts in eight records, not in nine', async () => {
  expect((await follow([seed('a dog called Rex', 1)], 8)).numFound).toBe(8);
  expect((await follow([seed('a dog called Rex', 1)], 9)).numFound).toBe(0);
});

test('[SE13] six names of four matches with 0.6 of the best score are followed', async () => {
  const six = ['Ada', 'Bob', 'Cid', 'Dan', 'Eve', 'Fay'];
  expect((await follow([seed(`with ${six.join(', ')}, Gus and Hal`, 1)])).names).toEqual(six);
  expect((await follow([seed('with Ada', 1), seed('with Bob', 0.6), seed('with Cid', 0.59)])).names).toEqual(['Ada', 'Bob']); // prettier-ignore
  const seeds = six.map((name, i) => seed(`with ${name}`, 1 - i / 100));
  expect((await follow(seeds)).names).toEqual(six.slice(0, 4));
  expect((await follow([seed('with Ada', null), seed('with Bob', 0.5)])).names).toEqual(['Bob']);
});

test('[SE13] a name of the question itself is not followed', async () => {
  expect((await follow([seed('the dogs Rex and Max', 1)], 1, 'What does Rex eat?')).names).toEqual(['Max']);
});
