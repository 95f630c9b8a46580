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
 * What V8 counts down before it optimizes a function, in bytes of code it ran; its own figure, and ours. SQLite's interpreter is one
 * function whose loop spans all of it, so with V8's own figure a few dozen instructions are enough to optimize it, and that takes
 * 30 MB that the C library keeps. With ours an opened memory stays below, and one in use is past it within a second.
 */
const TIERING_BUDGET = { default: 1_800_000, sqlite: 1_000_000_000 };

/** Only where V8 is known to read the figure once a module, when it is compiled; Node 23 and newer have their own SQLite. */
const canTuneTiering = /^2[0-2]\./.test(process.versions.node);

let loaded: WasmModule | null = null;

function loadWasmSqlite(): WasmModule {
  const load = (): WasmModule => createRequire(import.meta.url)('node-sqlite3-wasm') as WasmModule;
  if (loaded !== null || !canTuneTiering) return (loaded ??= load());
  setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET.sqlite}`);
  try {
    return (loaded = load());
  } finally {
    // Flags are the whole process's: other modules keep what they would have had.
    setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET.default}`);
  }
}

/**
 * SQLite in WebAssembly, for Node without its own. It locks by making the folder `<path>.lock` and leaves that behind when it is
 * killed: whoever has the folder's own lock removes it first. It calls every failed write an I/O error, so `isDiskFull` is asked.
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
