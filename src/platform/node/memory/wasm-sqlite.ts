import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
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
 * Bytes of code that V8 runs before it optimizes a function: its default, and ours. SQLite's interpreter is one large loop, so
 * the default optimizes it after a few dozen instructions, which takes 30 MB that the C library keeps. With ours an idle memory
 * stays below, and a used one is past it within a second.
 */
const TIERING_BUDGET = { default: 1_800_000, sqlite: 1_000_000_000 };

/** Only where V8 reads it once per module, when it is compiled; Node 23 and newer have their own SQLite. */
const canTuneTiering = /^2[0-2]\./.test(process.versions.node);

let loaded: WasmModule | null = null;

function loadWasmSqlite(): WasmModule {
  const load = (): WasmModule => createRequire(import.meta.url)('node-sqlite3-wasm') as WasmModule;
  if (loaded !== null || !canTuneTiering) return (loaded ??= load());
  setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET.sqlite}`);
  try {
    return (loaded = load());
  } finally {
    // Flags are global: other modules keep the default.
    setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET.default}`);
  }
}

/**
 * SQLite in WebAssembly, for Node without its own. Its lock is the folder `<path>.lock`, which a killed process leaves behind; the
 * owner of the memory's folder removes it. It reports every failed write as an I/O error, so `isDiskFull` is checked.
 */
export function openWasmSqlite(path: string, isDiskFull: () => boolean): SqlDatabase {
  const { Database } = loadWasmSqlite();
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
