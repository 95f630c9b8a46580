import { createRequire } from 'node:module';
import type { SqlDatabase, SqlRow } from '../../../memory/store/sqlite/sql-database.ts';
import { wrapDatabase } from './sqlite-driver.ts';

interface NodeStatement {
  run(...values: unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  all(...values: unknown[]): SqlRow[];
}

interface NodeDatabase {
  exec(sql: string): void;
  prepare(sql: string): NodeStatement;
  close(): void;
}

type NodeModule = { readonly DatabaseSync: new (path: string) => NodeDatabase };

/** Null: not available (before Node 22.13 it is behind a flag). */
export function findNodeSqlite(): NodeModule | null {
  const { emitWarning } = process;
  try {
    // Suppresses the warning that it is experimental: using it is our decision.
    process.emitWarning = () => {};
    return createRequire(import.meta.url)('node:sqlite') as NodeModule;
  } catch {
    return null;
  } finally {
    process.emitWarning = emitWarning;
  }
}

export function openNodeSqlite({ DatabaseSync }: NodeModule, path: string, isDiskFull: () => boolean): SqlDatabase {
  const database = new DatabaseSync(path);
  return wrapDatabase<NodeStatement>(
    {
      exec: (sql) => database.exec(sql),
      prepare: (sql) => database.prepare(sql),
      run: (statement, values) => statement.run(...values),
      all: (statement, values) => statement.all(...values),
      finalize: () => {}, // with the last reference
      close: () => database.close(),
    },
    isDiskFull,
  );
}
