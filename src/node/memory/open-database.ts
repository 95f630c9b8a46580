import { RuvLLMError } from '../../core/errors.ts';
import { checkSchema } from '../../memory/store/sqlite/schema.ts';
import { toSqlError, type SqlDatabase } from '../../memory/store/sqlite/sql-database.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import { findNodeSqlite, openNodeSqlite } from '../../platform/node/memory/node-sqlite.ts';
import { OPENING_PRAGMAS } from '../../platform/node/memory/sqlite-driver.ts';
import { openWasmSqlite } from '../../platform/node/memory/wasm-sqlite.ts';
import type { Files } from '../../platform/node/sealing/atomic-files.ts';

export type SqliteDriver = 'auto' | 'node' | 'wasm';

export interface OpenDatabaseOptions {
  readonly driver: SqliteDriver;
  readonly files: Files;
  readonly isDiskFull: () => boolean;
  /** Whether a database of any version and program is opened, because its header may be damaged. Default false. */
  readonly isUnchecked?: boolean;
}

/** Opens or creates a database; refuses those of other programs and newer versions. */
export function openDatabase(
  path: string,
  { driver: wanted, files, isDiskFull, isUnchecked = false }: OpenDatabaseOptions,
): { database: SqlDatabase; driver: 'node' | 'wasm' } {
  const own = wanted === 'wasm' ? null : findNodeSqlite();
  if (wanted === 'node' && own === null) {
    throw new RuvLLMError(
      'unsupported',
      `Node ${process.versions.node} has no node:sqlite; it requires 22.13 or newer`,
    );
  }
  reserveFile(files, path);
  let database: SqlDatabase;
  try {
    database = own === null ? openWasmSqlite(path, isDiskFull) : openNodeSqlite(own, path, isDiskFull);
  } catch (error) {
    throw toSqlError(error, isDiskFull);
  }
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    if (!isUnchecked) checkSchema(database);
    database.exec(OPENING_PRAGMAS);
  } catch (error) {
    closeQuietly(database);
    throw error;
  }
  return { database, driver: own === null ? 'wasm' : 'node' };
}

/** After an error, which counts. */
export function closeQuietly(database: SqlDatabase | null): void {
  try {
    database?.close();
  } catch {
    // The first error counts.
  }
}

/** SQLite would create it readable for everyone. */
function reserveFile(files: Files, path: string): void {
  try {
    files.closeSync(files.openSync(path, 'a', 0o600));
  } catch (error) {
    throw toFileError(error, 'opening the database', path);
  }
}
