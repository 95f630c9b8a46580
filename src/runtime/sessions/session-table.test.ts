import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMemoryRecords } from '../../../test/support/memory-records.ts';
import { createSessionTable, type SessionTableOptions } from './session-table.ts';

function setUp(options: Partial<SessionTableOptions> = {}) {
  let clock = 0;
  const table = createSessionTable({
    maxSessions: 2,
    vocabSize: 100,
    records: null,
    wallClock: () => ++clock,
    ...options,
  });
  const keep = (tenant: string, id: string, ...tokens: number[]) =>
    table.keepTurn({ tenant, id }, Int32Array.from(tokens), 1);
  const tokensOf = (tenant: string, id: string) => {
    const state = table.find({ tenant, id });
    return state === null ? null : Array.from(state.tokenIds!);
  };
  return { table, keep, tokensOf };
}

test('no two names are the same session, wherever the same letters are cut into tenant and id', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', '1', ':'), minLength: 3, maxLength: 6 });
  fc.assert(
    fc.property(letters, fc.nat(), fc.nat(), (all, one, two) => {
      const [cut, other] = [1 + (one % (all.length - 1)), 1 + (two % (all.length - 1))];
      fc.pre(cut !== other);
      const { keep, tokensOf } = setUp();
      keep(all.slice(0, cut), all.slice(cut), 1);
      expect(tokensOf(all.slice(0, other), all.slice(other))).toBeNull();
      expect(tokensOf(all.slice(0, cut), all.slice(cut))).toEqual([1]);
    }),
  );
});

test('the one not used for longest is forgotten first; looking counts as use', () => {
  const { table, keep, tokensOf } = setUp();
  keep('t', 'a', 1);
  keep('t', 'b', 2);
  expect(tokensOf('t', 'a')).toEqual([1]);
  keep('t', 'c', 3);
  expect(table.size).toBe(2);
  expect([tokensOf('t', 'a'), tokensOf('t', 'b'), tokensOf('t', 'c')]).toEqual([[1], null, [3]]);
});

test('what was forgotten in memory comes back from the records, also in another table', () => {
  const map = new Map<string, Uint8Array>();
  const { table, keep, tokensOf } = setUp({ records: createMemoryRecords(map) });
  for (let i = 0; i < 10; i++) keep('t', `s${i}`, i, 99);
  expect(table.size).toBe(2);
  for (let i = 0; i < 10; i++) expect(tokensOf('t', `s${i}`)).toEqual([i, 99]);
  expect(table.size).toBe(2);
  const later = setUp({ records: createMemoryRecords(map) });
  expect(later.table.find({ tenant: 't', id: 's3' })).toMatchObject({ numTurns: 1, numTokens: 2, lastUsedMs: 4 });
});

test('a turn the records refuse did not happen', () => {
  const { table, keep, tokensOf } = setUp({
    records: {
      ...createMemoryRecords(new Map()),
      put() {
        throw new Error('full');
      },
    },
  });
  expect(() => keep('t', 'a', 1)).toThrow('full');
  expect(tokensOf('t', 'a')).toBeNull();
  expect(table.size).toBe(0);
});

test('lists a tenant, the last used first, in memory or not; deletes for good', () => {
  const map = new Map<string, Uint8Array>();
  const { table, keep, tokensOf } = setUp({ records: createMemoryRecords(map) });
  keep('t', 'a', 1);
  keep('t', 'b', 1, 2);
  keep('other', 'x', 1);
  table.countTurn({ tenant: 't', id: 'h' }, 50);
  expect(table.list('t')).toEqual([
    { tenant: 't', id: 'h', numTokens: 50, numTurns: 1, lastUsedMs: 4 },
    { tenant: 't', id: 'b', numTokens: 2, numTurns: 1, lastUsedMs: 2 },
    { tenant: 't', id: 'a', numTokens: 1, numTurns: 1, lastUsedMs: 1 },
  ]);
  expect([table.delete({ tenant: 't', id: 'a' }), table.delete({ tenant: 't', id: 'a' })]).toEqual([true, false]);
  expect(table.delete({ tenant: 't', id: 'h' })).toBe(true);
  expect(tokensOf('t', 'a')).toBeNull();
  expect(table.list('t').map(({ id }) => id)).toEqual(['b']);
  expect([...map.keys()]).toEqual(['|t|b', '|other|x']);
});

test('a count never replaces tokens', () => {
  const { table, keep, tokensOf } = setUp();
  keep('t', 'a', 7);
  table.countTurn({ tenant: 't', id: 'a' }, 50);
  expect(tokensOf('t', 'a')).toEqual([7]);
  table.countTurn({ tenant: 't', id: 'h' }, 50);
  table.countTurn({ tenant: 't', id: 'h' }, 60);
  expect(table.find({ tenant: 't', id: 'h' })).toEqual({ tokenIds: null, numTokens: 60, numTurns: 2, lastUsedMs: 3 });
});

test('of two processes that go on with one conversation, the second to end its turn hears of the first', () => {
  const records = createMemoryRecords(new Map());
  const one = setUp({ records });
  const other = setUp({ records });
  const name = { tenant: 't', id: 'a' };
  one.keep('t', 'a', 1);
  expect(other.tokensOf('t', 'a')).toEqual([1]);
  one.table.keepTurn(name, Int32Array.of(1, 2), 2);
  expect(() => other.table.keepTurn(name, Int32Array.of(1, 3), 2)).toThrow(
    expect.objectContaining({ code: 'conflict', isRetryable: true, data: { numTurns: 2, expected: 1 } }),
  );
  expect(other.tokensOf('t', 'a')).toEqual([1, 2]);
  other.table.keepTurn(name, Int32Array.of(1, 2, 4), 3);
  expect(() => one.table.keepTurn(name, Int32Array.of(9), 1)).toThrow(/3 turns now, 0 when/);
});
