import * as nodeFiles from 'node:fs';
import { resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { withoutUndefined } from '../../memory/common/store-access.ts';
import { checkSchema } from '../../memory/store/sqlite/schema.ts';
import { createSqliteStore, type SqliteStoreOptions } from '../../memory/store/sqlite/sqlite-store.ts';
import { toSqlError, type SqlDatabase } from '../../memory/store/sqlite/sql-database.ts';
import type { MemoryStore } from '../../memory/types.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import type { Files } from '../../platform/node/sealing/atomic-files.ts';
import type { MasterSource } from '../../platform/node/sealing/master-source.ts';
import { checkpointWhenIdle } from '../../platform/node/memory/checkpoint-when-idle.ts';
import { flushLater } from '../../platform/node/memory/flush-later.ts';
import { openLexicalFiles } from '../../platform/node/memory/lexical-files.ts';
import { openMemoryFolder, type MemoryFolder } from '../../platform/node/memory/memory-folder.ts';
import { findNodeSqlite, openNodeSqlite } from '../../platform/node/memory/node-sqlite.ts';
import { OPENING_PRAGMAS } from '../../platform/node/memory/sqlite-driver.ts';
import { openWasmSqlite } from '../../platform/node/memory/wasm-sqlite.ts';

export type SqliteDriver = 'auto' | 'node' | 'wasm';

export interface MemoryStoreFolderOptions extends Pick<
  SqliteStoreOptions,
  'createIndex' | 'fields' | 'report' | 'saveIndexEvery'
> {
  readonly folder: string;
  readonly masterKey: MasterSource;
  /** Vector indexes on disk. Default: none. */
  readonly openIndexFiles?: (folder: MemoryFolder) => SqliteStoreOptions['indexFiles'];
  /** Default: `auto`, Node's own if available. */
  readonly driver?: SqliteDriver;
  readonly now?: () => number;
  readonly files?: Files;
  /** Cost of new passphrases; for tests. */
  readonly scryptN?: number;
}

export interface OpenedMemoryStore {
  readonly store: MemoryStore;
  readonly driver: 'node' | 'wasm';
  /** The store stays usable; the old key no longer opens the folder. */
  rotateMasterKey(to: MasterSource): void;
}

/**
 * Opens or creates the memory in a folder. Refuses, without changes: another master key (`invalid_option`), a newer version
 * (`unsupported`), a folder that another process has open (`conflict`).
 */
export function openMemoryStore(options: MemoryStoreFolderOptions): OpenedMemoryStore {
  const { masterKey, createIndex, openIndexFiles, files = nodeFiles, now = Date.now } = options;
  const { fields, report, saveIndexEvery, scryptN } = options;
  const folder = openMemoryFolder(withoutUndefined({ folder: resolve(options.folder), masterKey, files, scryptN }));
  let database: SqlDatabase | null = null;
  try {
    const opened = openDatabase(folder, options.driver ?? 'auto', files);
    ({ database } = opened);
    const store = createSqliteStore({
      database,
      keys: folder.keys,
      now,
      createIndex,
      indexFiles: openIndexFiles?.(folder) ?? null,
      lexicalFiles: openLexicalFiles(resolve(options.folder), files),
      defer: (run) => void setImmediate(run),
      diskBytes: folder.diskBytes,
      onClose: folder.release,
      ...withoutUndefined({ fields, report, saveIndexEvery }),
    });
    return { store, driver: opened.driver, rotateMasterKey: folder.rotateMasterKey };
  } catch (error) {
    try {
      database?.close();
    } catch {
      // The first error counts.
    }
    folder.release();
    throw error;
  }
}

/** Replaces the master key of a closed folder; the next opening finishes it after a crash. */
export function rotateMasterKey(options: {
  readonly folder: string;
  readonly from: MasterSource;
  readonly to: MasterSource;
  readonly files?: Files;
  readonly scryptN?: number;
}): void {
  const { from, to, files = nodeFiles, scryptN } = options;
  const path = resolve(options.folder);
  if (!files.existsSync(path)) throw new RuvLLMError('not_found', `there is no memory in ${path}`, { data: { path } });
  const folder = openMemoryFolder(withoutUndefined({ folder: path, masterKey: from, files, scryptN }));
  try {
    folder.rotateMasterKey(to);
  } finally {
    folder.release();
  }
}

function openDatabase(
  folder: MemoryFolder,
  wanted: SqliteDriver,
  files: Files,
): { database: SqlDatabase; driver: 'node' | 'wasm' } {
  const own = wanted === 'wasm' ? null : findNodeSqlite();
  if (wanted === 'node' && own === null) {
    throw new RuvLLMError(
      'unsupported',
      `Node ${process.versions.node} has no node:sqlite; it requires 22.13 or newer`,
    );
  }
  const { databasePath: path, isDiskFull } = folder;
  reserveFile(files, path);
  let database: SqlDatabase;
  try {
    database = own === null ? openWasmSqlite(path, isDiskFull) : openNodeSqlite(own, path, isDiskFull);
  } catch (error) {
    throw toSqlError(error, isDiskFull);
  }
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    checkSchema(database);
    database.exec(OPENING_PRAGMAS);
  } catch (error) {
    try {
      database.close();
    } catch {
      // The first error counts.
    }
    throw error;
  }
  const flushed = flushLater(guarded(database, folder), files, path);
  return { database: checkpointWhenIdle(flushed), driver: own === null ? 'wasm' : 'node' };
}

/** SQLite would create it readable for everyone. */
function reserveFile(files: Files, path: string): void {
  try {
    files.closeSync(files.openSync(path, 'a', 0o600));
  } catch (error) {
    throw toFileError(error, 'opening the database', path);
  }
}

/** Refuses writes after another process took the folder, which it may after a minute without a heartbeat. */
function guarded(database: SqlDatabase, folder: MemoryFolder): SqlDatabase {
  return {
    ...database,
    exec(sql) {
      if (sql.startsWith('BEGIN')) folder.requireHeld();
      database.exec(sql);
    },
  };
}
