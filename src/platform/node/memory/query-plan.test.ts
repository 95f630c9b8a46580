import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkRegistry, MEMORY_FIELDS } from '../../../memory/fields.ts';
import { SELECT_BY_ROWS } from '../../../memory/store/sqlite/records.ts';
import { SELECT_ROW_PAGE } from '../../../memory/store/sqlite/row-pages.ts';
import { migrate } from '../../../memory/store/sqlite/schema.ts';
import { openWasmSqlite } from './wasm-sqlite.ts';

test('reads search results row by row, for any size of a tenant', () => {
  const database = openWasmSqlite(':memory:', () => false);
  try {
    migrate(database, checkRegistry(MEMORY_FIELDS), 0);
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${SELECT_BY_ROWS}`).all('[1]', 1);
    expect(plan[0]!['detail']).toBe('SEARCH record USING INTEGER PRIMARY KEY (rowid=?)');
    // A damaged row of that form is the disk's fault, not ours.
    expect(() => database.prepare("SELECT json_array(x'ff')").all()).toThrow(expect.objectContaining({ code: 'io' }));
  } finally {
    database.close();
  }
});

test('reads pages of rows in their order, without sorting all of them for every page', () => {
  const database = openWasmSqlite(':memory:', () => false);
  try {
    migrate(database, checkRegistry(MEMORY_FIELDS), 0);
    const plan = database
      .prepare(`EXPLAIN QUERY PLAN ${SELECT_ROW_PAGE}`)
      .all(0, 1)
      .map(({ detail }) => detail);
    expect(plan[0]).toBe('SEARCH record USING INTEGER PRIMARY KEY (rowid>?)');
    expect(plan.join()).not.toContain('TEMP B-TREE');
  } finally {
    database.close();
  }
});

test('[MS26] SQLite writes the head of a row as it was sealed', () => {
  const database = openWasmSqlite(':memory:', () => false);
  try {
    const statement = database.prepare('SELECT json_array(?, ?, ?, ?) AS head');
    const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
    const word = fc.string({ unit: 'grapheme', maxLength: 8 });
    const fields = fc.dictionary(word, fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), word)); // prettier-ignore
    fc.assert(
      fc.property(whole, whole, fc.option(whole), fields, (a, b, c, d) => {
        const text = JSON.stringify(d);
        expect(statement.all(a, b, c, text)[0]!['head']).toBe(JSON.stringify([a, b, c, text]));
      }),
    );
  } finally {
    database.close();
  }
});
