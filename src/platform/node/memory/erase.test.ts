import * as nodeFiles from 'node:fs';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkRegistry, MEMORY_FIELDS } from '../../../memory/fields.ts';
import { checkCount } from '../../../memory/store/check-query.ts';
import { filterToSql } from '../../../memory/store/sqlite/filter-sql.ts';
import type { SqlDatabase } from '../../../memory/store/sqlite/sql-database.ts';
import { expectRefusal, idOf, recordOf, vectorOf } from '../../../memory/store/store-setup.contract.ts';
import { RECORD_KINDS, type RecordFilter } from '../../../memory/types.ts';
import { changeDatabase, newFolder, openAt } from './memory-setup.contract.ts';
import { openWasmSqlite } from './wasm-sqlite.ts';

const records = ['alpha', 'beta'].map((tenant) => recordOf(1, { tenant, vector: vectorOf(1), space: 's' }));

describe('erasing', () => {
  test('[MS30] a key that cannot be removed is an error; nothing of the tenant is shown, and the next opening finishes', async () => {
    const folder = newFolder();
    let isStuck = true;
    const rmSync: typeof nodeFiles.rmSync = (path, options) => {
      if (isStuck && String(path).endsWith('.key')) throw Object.assign(new Error('stuck'), { code: 'EIO' });
      nodeFiles.rmSync(path, options);
    };
    const { store } = openAt(folder, { files: { ...nodeFiles, rmSync } });
    await store.put(records);
    await expectRefusal(store.eraseTenant('alpha'), 'io', 'erasing the key file');
    expect(await store.get('alpha', [idOf(1)])).toEqual([null]);
    await expectRefusal(store.put([records[0]!]), 'conflict', 'is being erased');
    await expectRefusal(store.eraseTenant('alpha'), 'io');
    await store.close();
    expect(readdirSync(join(folder, 'keys'))).toHaveLength(2);
    isStuck = false;
    const again = openAt(folder);
    expect(readdirSync(join(folder, 'keys'))).toHaveLength(1);
    expect(await again.store.stats(null)).toMatchObject({ numRecords: { fact: 1 }, numVectors: 1 });
    expect(await again.store.put([records[0]!])).toEqual([{ id: idOf(1), version: 1 }]);
    await again.store.checkIntegrity();
  });

  test('[MS30] interrupted between key and rows, the rows go at the next opening', async () => {
    const folder = newFolder();
    const { store } = openAt(folder);
    await store.put(records);
    await store.close();
    const [key] = readdirSync(join(folder, 'keys'));
    changeDatabase(folder, `UPDATE tenant SET erasing = 1 WHERE id = '${key!.slice(0, 32)}'`);
    nodeFiles.rmSync(join(folder, 'keys', key!));
    const again = openAt(folder);
    expect(await again.store.stats(null)).toMatchObject({ numRecords: { fact: 1 }, numVectors: 1 });
    await again.store.checkIntegrity();
  });
});

const sealer = { nameOf: () => 'x', seal: () => new Uint8Array(), unseal: () => null };

/** Reads the database of a closed folder. */
function look<T>(folder: string, run: (database: SqlDatabase) => T): T {
  const database = openWasmSqlite(join(folder, 'memory.db'), () => false);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    return run(database);
  } finally {
    database.close();
  }
}

test('[MS31] declared fields have an index, which serves lookups by them; it goes with the declaration', async () => {
  const folder = newFolder();
  await openAt(folder).store.close();
  look(folder, (database) => {
    const planOf = (filter: RecordFilter): string => {
      const { from, sql, values } = filterToSql(checkCount({ kinds: RECORD_KINDS, filter }, MEMORY_FIELDS), sealer);
      return database
        .prepare(
          `EXPLAIN QUERY PLAN SELECT row FROM ${from} WHERE tenant = ? AND kind = ?${sql} ORDER BY created_ms, id`,
        )
        .all(1, 1, ...values)
        .map((row) => String(row['detail']))
        .join('; ');
    };
    for (const [name, { isIndexed, type }] of checkRegistry(MEMORY_FIELDS)) {
      const value = { word: 'x', number: 1, boolean: true }[type];
      const plan = planOf({ fields: [{ field: name, is: '=', value }] });
      const start = `SEARCH record USING INDEX field_${name} (tenant=? AND <expr>=? AND kind=?)`;
      expect([name, plan.startsWith(start)]).toEqual([name, isIndexed]);
    }
    expect(planOf({ createdFromMs: 1 })).toMatch(/^SEARCH record USING COVERING INDEX record_time/);
  });
  const hasIndex = (): boolean =>
    look(
      folder,
      (database) => database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'field_name'`).all().length > 0,
    );
  expect(hasIndex()).toBe(true);
  await openAt(folder, { fields: { ...MEMORY_FIELDS, state: {} } }).store.close();
  expect(hasIndex()).toBe(false);
  await openAt(folder).store.close();
  expect(hasIndex()).toBe(true);
});
