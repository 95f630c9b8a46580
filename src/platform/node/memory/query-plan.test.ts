import { expect, test } from 'vitest';
import { checkRegistry, MEMORY_FIELDS } from '../../../memory/fields.ts';
import { SELECT_BY_ROWS } from '../../../memory/store/sqlite/records.ts';
import { migrate } from '../../../memory/store/sqlite/schema.ts';
import { openWasmSqlite } from './wasm-sqlite.ts';

test('what a search found is read row by row, however much a tenant has', () => {
  const database = openWasmSqlite(':memory:', () => false);
  try {
    migrate(database, checkRegistry(MEMORY_FIELDS), 0);
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${SELECT_BY_ROWS}`).all('[1]', 1);
    expect(plan[0]!['detail']).toBe('SEARCH record USING INTEGER PRIMARY KEY (rowid=?)');
  } finally {
    database.close();
  }
});
