import { expect, test } from 'vitest';
import type { Tenant } from '../sealer.ts';
import { SELECT_ROW_PAGE } from './row-pages.ts';
import { scrubRows } from './scrub.ts';
import type { SqlDatabase, SqlRow } from './sql-database.ts';
import type { Tenants } from './tenants.ts';

test('rows behind a page that cannot be read are checked, too', async () => {
  const page = (after: number): readonly SqlRow[] => {
    if (after < 100) throw new Error('page unreadable');
    return after < 150 ? [{ row: 150, tenant: 1 }] : [];
  };
  const answers: Record<string, (after: number) => readonly SqlRow[]> = {
    'PRAGMA quick_check(1)': () => [{ quick_check: 'ok' }],
    'PRAGMA page_count': () => [{ page_count: 10 }],
    'SELECT no FROM tenant WHERE erasing = 0': () => [{ no: 1 }],
    'SELECT 1 FROM tenant WHERE no = ? AND erasing = 0': () => [{ 1: 1 }],
    'SELECT coalesce(max(row), 0) AS row FROM record': () => [{ row: 150 }],
    [SELECT_ROW_PAGE]: page,
  };
  const database = { prepare: (sql: string) => ({ all: answers[sql]! }) } as unknown as SqlDatabase;
  const damage: string[] = [];
  let numOpened = 0;
  await scrubRows({
    database,
    tenants: { byNumber: (no) => (numOpened++, { no, id: 'a' } as Tenant) } as Tenants,
    isEnded: () => false,
    defer: setImmediate,
    onDamaged: (problem) => void damage.push(problem),
  });
  // The second one is a row without its columns.
  expect(damage).toEqual(['page unreadable', expect.stringMatching(/./)]);
  expect(numOpened).toBe(1);
});
