import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../test/support/refusal-of.ts';
import { readPage, writeList } from './openai/list-page.ts';
import { pageAfter, readOption } from './page-query.ts';
import { queryBoolean, queryInteger, queryText, readQuery } from './query-fields.ts';

const items = ['a', 'b', 'c'].map((id) => ({ id }));

describe('a page', () => {
  test.each([
    [null, 2, 'ab', true],
    [null, 3, 'abc', false],
    [null, 4, 'abc', false],
    ['a', 1, 'b', true],
    ['a', 2, 'bc', false],
    ['b', 2, 'c', false],
    ['c', 2, '', false],
  ])('after %j with %i items', (after, limit, ids, hasMore) => {
    const page = pageAfter(items, { after, limit, param: 'after' });
    expect([page.data.map(({ id }) => id).join(''), page.hasMore]).toEqual([ids, hasMore]);
  });

  test('after an unknown item is refused', () => {
    expect(refusalOf(() => pageAfter(items, { after: 'd', limit: 1, param: 'after_id' }))).toMatchObject({
      status: 400,
      param: 'after_id',
      message: `'after_id': item "d" not found`,
    });
  });

  test.each([
    ['', 'asc', ['a', 'b', 'c'], false],
    ['', 'desc', ['c', 'b', 'a'], false],
    ['order=asc', 'desc', ['a', 'b', 'c'], false],
    ['order=desc&limit=2', 'asc', ['c', 'b'], true],
    ['order=desc&after=b', 'asc', ['a'], false],
  ] as const)('of the query %j, by default %s', (query, order, ids, hasMore) => {
    const page = readPage(items, new URLSearchParams(query), order);
    expect([page.data.map(({ id }) => id), page.hasMore]).toEqual([ids, hasMore]);
  });

  test('has 20 items by default, and its first and last id in a list of OpenAI', () => {
    const many = Array.from({ length: 21 }, (_, index) => ({ id: `i${index}` }));
    const { data, hasMore } = readPage(many, new URLSearchParams(), 'asc');
    expect(writeList(data, hasMore)).toEqual({
      object: 'list',
      data: many.slice(0, 20),
      has_more: true,
      first_id: 'i0',
      last_id: 'i19',
    });
    expect(writeList([], false)).toMatchObject({ first_id: '', last_id: '' });
  });
});

test('an option of a query has a fallback', () => {
  const query = new URLSearchParams('limit=7');
  expect(readOption(query, 'limit', queryInteger(1, 9), 5)).toBe(7);
  expect(readOption(query, 'order', queryInteger(1, 9), 5)).toBe(5);
});

describe('a query', () => {
  const FIELDS = { limit: queryInteger(0, 9), wait: queryBoolean, name: queryText(3) };
  const read = (query: string) => readQuery(new Request(`http://localhost/x?${query}`), FIELDS);

  test.each([
    ['', { limit: null, wait: null, name: null }],
    ['limit=0&wait=false', { limit: 0, wait: false, name: null }],
    ['limit=9&wait=true&name=abc', { limit: 9, wait: true, name: 'abc' }],
  ])('%j is read', (query, values) => {
    expect(read(query)).toEqual(values);
  });

  test.each([
    ['limit=10', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=1e0', 'limit'],
    ['limit=', 'limit'],
    ['wait=1', 'wait'],
    ['wait=True', 'wait'],
    ['name=', 'name'],
    ['name=abcd', 'name'],
    ['limit=1&limit=1', 'limit'],
    ['more=1', 'more'],
    ['__proto__=1', '__proto__'],
  ])('%j is refused', (query, param) => {
    expect(refusalOf(() => read(query))).toMatchObject({ status: 400, param });
  });
});
