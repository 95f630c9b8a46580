import { randomBytes } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { withoutUndefined } from '../../memory/common/store-access.ts';
import {
  createSqliteStore,
  type SqliteStore,
  type SqliteStoreOptions,
} from '../../memory/store/sqlite/sqlite-store.ts';
import type { SqlDatabase } from '../../memory/store/sqlite/sql-database.ts';
import type { Files } from '../../platform/node/sealing/atomic-files.ts';
import type { MasterSource } from '../../platform/node/sealing/master-source.ts';
import { checkpointWhenIdle } from '../../platform/node/memory/checkpoint-when-idle.ts';
import { flushLater } from '../../platform/node/memory/flush-later.ts';
import { openLexicalFiles } from '../../platform/node/memory/lexical-files.ts';
import { openMemoryFolder, type MemoryFolder } from '../../platform/node/memory/memory-folder.ts';
import { openStateHead, type StateHead } from '../../platform/node/memory/state-head.ts';
import type { BackupReport } from '../../memory/remote/protocol.ts';
import { backUp, type BackupRequest } from './back-up.ts';
import { withCheckpoints } from './checkpoints.ts';
import { closeQuietly, openDatabase, type SqliteDriver } from './open-database.ts';
import {
  checkStateTenant,
  type Expected,
  findLostFile,
  finishRecovery,
  isDamage,
  recoverDatabase,
} from './recover-database.ts';

export type { SqliteDriver } from './open-database.ts';

export interface MemoryStoreFolderOptions extends Pick<
  SqliteStoreOptions,
  'createIndex' | 'fields' | 'report' | 'saveIndexEvery' | 'onProblem'
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
  /** Rebuilds the database from all readable rows and accepts what is lost. Default false. */
  readonly isRepair?: boolean;
}

export interface OpenedMemoryStore {
  readonly store: SqliteStore;
  readonly driver: 'node' | 'wasm';
  /** What was recovered and lost when it was opened; null: it was intact. */
  readonly recovered: string | null;
  backUp(request: BackupRequest): Promise<BackupReport>;
  /** The store stays usable; the old key no longer opens the folder. */
  rotateMasterKey(to: MasterSource): void;
}

/**
 * Opens or creates the memory in a folder. Refuses, without changes: another master key (`invalid_option`), a newer version
 * (`unsupported`), a folder that another process has open (`conflict`).
 */
export function openMemoryStore(options: MemoryStoreFolderOptions): OpenedMemoryStore {
  const { masterKey, files = nodeFiles, report = () => {}, scryptN } = options;
  const path = resolve(options.folder);
  const folder = openMemoryFolder(withoutUndefined({ folder: path, masterKey, files, scryptN, report }));
  const head = openStateHead(files, path, folder.keyFor('seal the head of the memory'));
  try {
    return openStore(options, folder, head);
  } catch (error) {
    head.close();
    folder.release();
    throw error;
  }
}

/** Opens the database; one that is missing or damaged is replaced by what can be read of it. */
function openStore(options: MemoryStoreFolderOptions, folder: MemoryFolder, head: StateHead): OpenedMemoryStore {
  const { files = nodeFiles, now = Date.now, driver = 'auto', fields, isRepair = false } = options;
  const opening = { driver, files, isDiskFull: folder.isDiskFull };
  let expected: Expected = head.read();
  let problem: string | null = null;
  const recover = (reason: string): void => {
    const recovered = recoverDatabase(reason, { ...opening, folder, expected, now, ...withoutUndefined({ fields }) });
    ({ expected } = recovered);
    problem = problem === null ? recovered.problem : `${problem}; ${recovered.problem}`;
  };
  finishRecovery(files, folder);
  const lost = findLostFile(files, folder, expected);
  if (lost !== null || isRepair) recover(lost ?? 'the database was rebuilt');
  for (let attempt = 0; ; attempt++) {
    let database: SqlDatabase | null = null;
    try {
      const opened = openDatabase(folder.databasePath, opening);
      ({ database } = opened);
      checkStateTenant(database, folder);
      const held = withCheckpoints(guarded(database, folder));
      const flushed = flushLater(held.database, files, folder.databasePath);
      database = checkpointWhenIdle(flushed);
      const store = createStore(options, folder, database, { head, expected, problem: isRepair ? null : problem });
      return {
        store,
        driver: opened.driver,
        recovered: problem,
        rotateMasterKey: folder.rotateMasterKey,
        backUp: (request) => backUp({ store, folder, checkpoints: held.checkpoints, driver, files, now }, request),
      };
    } catch (error) {
      closeQuietly(database);
      if (!isDamage(error) || attempt > 0) throw error;
      recover(error.message);
    }
  }
}

function createStore(
  options: MemoryStoreFolderOptions,
  folder: MemoryFolder,
  database: SqlDatabase,
  state: { head: StateHead; expected: Expected; problem: string | null },
): SqliteStore {
  const { createIndex, openIndexFiles, files = nodeFiles, now = Date.now } = options;
  const { fields, report, saveIndexEvery, onProblem } = options;
  return createSqliteStore({
    database,
    keys: folder.keys,
    now,
    createIndex,
    indexFiles: openIndexFiles?.(folder) ?? null,
    lexicalFiles: openLexicalFiles(folder.path, files),
    defer: (run) => void setImmediate(run),
    diskBytes: folder.diskBytes,
    onClose() {
      state.head.close();
      folder.release();
    },
    head: {
      file: state.head,
      expected: state.expected,
      newGeneration: () => randomBytes(6).readUIntBE(0, 6),
      problem: state.problem,
    },
    ...withoutUndefined({ fields, report, saveIndexEvery, onProblem }),
  });
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
