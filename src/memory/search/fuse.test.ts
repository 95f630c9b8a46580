import { expect, test } from 'vitest';
import type { MemoryRecord } from '../types.ts';
import { bestOfEach, fuse, inOrder, type MemoryResult, STRONG_LEXICAL } from './fuse.ts';

const recordOf = (id: string, kind = 'fact', fields = {}): MemoryRecord =>
  ({ id, kind, fields, body: { text: id } }) as unknown as MemoryRecord;
const resultOf = (id: string, score: number, kind?: string, fields?: object): MemoryResult => ({ record: recordOf(id, kind, fields), text: id, score, similarity: score, lexical: null, hops: 0 }); // prettier-ignore
const idsOf = (results: readonly MemoryResult[]): string[] => results.map(({ record }) => record.id);

test('the score is similarity plus lexical score; a match that is not near counts as near as the furthest', () => {
  const near = [{ record: recordOf('a'), similarity: 0.75 }, { record: recordOf('b'), similarity: 0.5 }]; // prettier-ignore
  const matches = [{ record: recordOf('b'), score: 0.125 }, { record: recordOf('c'), score: 0.25 }]; // prettier-ignore
  expect(fuse(near, matches, -1)).toEqual([
    { record: recordOf('a'), text: 'a', score: 0.75, similarity: 0.75, lexical: null, hops: 0 },
    { record: recordOf('b'), text: 'b', score: 0.625, similarity: 0.5, lexical: 0.125, hops: 0 },
    { record: recordOf('c'), text: 'c', score: 0.75, similarity: null, lexical: 0.25, hops: 0 },
  ]);
  expect(fuse([], matches, -1).map(({ score }) => score)).toEqual([0.125, 0.25]);
});

test('the least similarity and the least strong match are results, what is below both is none', () => {
  const near = [{ record: recordOf('at'), similarity: 0.5 }, { record: recordOf('below'), similarity: 0.49 }]; // prettier-ignore
  const matches = [{ record: recordOf('strong'), score: STRONG_LEXICAL }, { record: recordOf('weak'), score: 0.24 }]; // prettier-ignore
  expect(idsOf(fuse(near, matches, 0.5))).toEqual(['at', 'strong']);
});

test('trusted records come first, then better ones, then older ones; each once with its best score', () => {
  const answer = resultOf('answer', 0.9, 'qa-pair', { sessionId: 's' });
  const results = [answer, resultOf('b', 0.5), resultOf('a', 0.5), resultOf('b', 0.7)];
  expect(idsOf(inOrder(results))).toEqual(['b', 'a', 'b', 'answer']);
  expect(bestOfEach(results).map(({ record, score }) => [record.id, score])).toEqual([
    ['b', 0.7],
    ['a', 0.5],
    ['answer', 0.9],
  ]);
});
