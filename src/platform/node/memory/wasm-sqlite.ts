import { createRequire } from 'node:module';
import type { SqlDatabase, SqlRow } from '../../../memory/store/sqlite/sql-database.ts';
import { wrapDatabase } from './sqlite-driver.ts';

interface WasmStatement {
  run(values: unknown[]): { changes: number; lastInsertRowid: number | bigint };
  all(values: unknown[]): SqlRow[];
  finalize(): void;
}

interface WasmDatabase {
  exec(sql: string): void;
  prepare(sql: string): WasmStatement;
  close(): void;
}

type WasmModule = { readonly Database: new (path: string) => WasmDatabase };

/**
 * SQLite in WebAssembly, for Node without its own. It locks by making the folder `<path>.lock` and leaves that behind when it is
 * killed: whoever has the folder's own lock removes it first. It calls every failed write an I/O error, so `isDiskFull` is asked.
 */
export function openWasmSqlite(path: string, isDiskFull: () => boolean): SqlDatabase {
  const { Database } = createRequire(import.meta.url)('node-sqlite3-wasm') as WasmModule;
  const database = new Database(path);
  return wrapDatabase<WasmStatement>(
    {
      exec: (sql) => database.exec(sql),
      prepare: (sql) => database.prepare(sql),
      run: (statement, values) => statement.run([...values]),
      all: (statement, values) => statement.all([...values]),
      finalize: (statement) => statement.finalize(),
      close: () => database.close(),
    },
    isDiskFull,
  );
}
