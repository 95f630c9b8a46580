import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { checkRegistry, MEMORY_FIELDS, type FieldRegistry } from '../../memory/fields.ts';
import { STATE_TENANT } from '../../memory/state-tenant.ts';
import { numberOf } from '../../memory/store/row-values.ts';
import { openRow, RECORD_COLUMNS } from '../../memory/store/sqlite/record-row.ts';
import { salvageRows, type SalvageReport } from '../../memory/store/sqlite/salvage.ts';
import { checkSchema, migrate } from '../../memory/store/sqlite/schema.ts';
import type { SqlDatabase } from '../../memory/store/sqlite/sql-database.ts';
import type { StoredHead } from '../../memory/store/sqlite/store-head.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import type { MemoryFolder } from '../../platform/node/memory/memory-folder.ts';
import { flushFolder, listNames, makeFolder, type Files } from '../../platform/node/sealing/atomic-files.ts';
import { closeQuietly, openDatabase, type OpenDatabaseOptions } from './open-database.ts';

/** Folders of damaged files that are kept; the oldest is removed for a new one. */
const MAX_ASIDE = 8;
const DERIVED = ['vectors', 'lexical'];
const HEADER_BYTES = 100;
/** No release will have a newer one; a changed byte of the header may say so. */
const MAX_VERSION = 1000;

export type Expected = StoredHead | 'absent' | 'damaged';

/** Why the files of the database cannot be whole; null: nothing to see without opening them. */
export function findLostFile(files: Files, folder: MemoryFolder, expected: Expected): string | null {
  const { databasePath: path } = folder;
  const size = files.statSync(path, { throwIfNoEntry: false })?.size ?? null;
  const hadData = expected === 'absent' ? folder.hasTenantKeys : true;
  if (size === null) return hadData ? 'the database memory.db is missing' : null;
  // SQLite takes an empty file for a new database, and removes its log.
  if (size === 0) return hadData ? 'the database memory.db is empty' : null;
  const logBytes = files.statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (logBytes > 0) return null; // pages that the file lacks may be in it
  const expectedBytes = sizeByHeader(files, path);
  return expectedBytes > size ? `the database memory.db has ${size} of ${expectedBytes} bytes` : null;
}

/** Page size and number of pages, as the first page has them. */
function sizeByHeader(files: Files, path: string): number {
  const header = Buffer.alloc(HEADER_BYTES);
  try {
    const handle = files.openSync(path, 'r');
    try {
      files.readSync(handle, header, 0, HEADER_BYTES, 0);
    } finally {
      files.closeSync(handle);
    }
  } catch (error) {
    throw toFileError(error, 'reading the database', path);
  }
  const pageBytes = header.readUInt16BE(16);
  return (pageBytes === 1 ? 65_536 : pageBytes) * header.readUInt32BE(28);
}

/** Whether an error of opening says that the file is damaged, rather than the disk or the key. */
export function isDamage(error: unknown): error is RuvLLMError {
  if (!(error instanceof RuvLLMError)) return false;
  if (error.code === 'unsupported') return Number(error.data['version']) > MAX_VERSION;
  if (error.code !== 'io') return false;
  const { sqlite, isDamaged } = error.data;
  return (
    isDamaged === true ||
    /malformed|not a database|corrupt/i.test(String(sqlite ?? '')) ||
    /not a ruvllm memory/.test(error.message)
  );
}

/** Throws `io` if the memory's own records, without which it cannot be opened, are damaged. */
export function checkStateTenant(database: SqlDatabase, { keys }: MemoryFolder): void {
  if (checkSchema(database) === 0) return; // new
  const id = keys.idOf(STATE_TENANT);
  const row = database.prepare('SELECT no FROM tenant WHERE id = ? AND erasing = 0').all(id)[0];
  if (row === undefined) return;
  const sealer = keys.find(id);
  if (sealer === null) throw new RuvLLMError('io', `the key of tenant ${id} is missing`, { data: { isDamaged: true } });
  const rows = database.prepare(`SELECT ${RECORD_COLUMNS} FROM record WHERE tenant = ?`).all(numberOf(row['no']));
  for (const one of rows) openRow(one, id, STATE_TENANT, sealer);
}

interface RecoverOptions extends OpenDatabaseOptions {
  readonly folder: MemoryFolder;
  readonly expected: Expected;
  readonly fields?: FieldRegistry;
  readonly now: () => number;
}

/** A rebuilt database that is complete, while the damaged one is moved aside. */
const readyPathOf = (databasePath: string): string => `${databasePath}.ready`;

/** Puts a rebuilt database in place if the process was killed while it did that. */
export function finishRecovery(files: Files, { databasePath }: MemoryFolder): void {
  const ready = readyPathOf(databasePath);
  if (files.existsSync(ready) && !files.existsSync(databasePath)) files.renameSync(ready, databasePath);
}

/**
 * Makes a new database of every row that can still be read, and moves the files of the damaged one aside. Killed at any point, the
 * next opening finds the damaged files or the complete new one. Returns what the database should contain from now on, and what happened.
 */
export function recoverDatabase(reason: string, options: RecoverOptions): { expected: Expected; problem: string } {
  const { folder, expected, files, now } = options;
  const { databasePath } = folder;
  try {
    const aside = makeAside(files, folder, now());
    const { numRecords, droppedTenants } = rebuild(options);
    // Derived from rows that may be gone.
    for (const name of DERIVED) files.rmSync(join(folder.path, name), { recursive: true, force: true });
    for (const id of droppedTenants) folder.setKeyAside(id, aside);
    for (const suffix of ['-wal', '']) {
      if (files.existsSync(databasePath + suffix)) files.renameSync(databasePath + suffix, join(aside, `memory.db${suffix}`)); // prettier-ignore
    }
    flushFolder(files, aside);
    files.renameSync(readyPathOf(databasePath), databasePath);
    flushFolder(files, folder.path);
    const known = typeof expected === 'string' ? null : expected;
    const total = known === null ? '' : ` of ${known.numRecords}`;
    const text = `${reason}: ${numRecords}${total} records were recovered; the damaged files are in ${aside}`;
    const problem = [known?.problem ?? null, text].filter((part) => part !== null).join('; ');
    return { expected: known === null ? expected : { ...known, numRecords, problem: null }, problem };
  } catch (error) {
    throw toFileError(error, 'recovering the database', databasePath);
  }
}

function makeAside(files: Files, { path }: MemoryFolder, nowMs: number): string {
  const root = join(path, 'damaged');
  const time = join(root, new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-'));
  // Another one of the same time must not be overwritten.
  let aside = time;
  for (let i = 2; files.existsSync(aside); i++) aside = `${time}-${i}`;
  makeFolder(files, aside, true);
  for (const name of listNames(files, root).sort().slice(0, -MAX_ASIDE)) {
    files.rmSync(join(root, name), { recursive: true, force: true });
  }
  return aside;
}

function rebuild(options: RecoverOptions): SalvageReport {
  const { folder, expected, files, fields = MEMORY_FIELDS, now } = options;
  const [newPath, readyPath] = [`${folder.databasePath}.new`, readyPathOf(folder.databasePath)];
  for (const path of [newPath, `${newPath}-wal`, readyPath]) files.rmSync(path, { force: true });
  const { database: target } = openDatabase(newPath, options);
  let source: SqlDatabase | null = null;
  let report: SalvageReport;
  try {
    migrate(target, checkRegistry(fields), now());
    // SQLite would remove the log of an empty database.
    const sizeBytes = files.statSync(folder.databasePath, { throwIfNoEntry: false })?.size ?? 0;
    source = sizeBytes === 0 ? null : tryOpen(folder.databasePath, options);
    const stateId = folder.keys.idOf(STATE_TENANT);
    report = salvageRows({ source, target, keys: folder.keys, isDispensable: (id) => id === stateId });
    if (typeof expected !== 'string') {
      const { generation, epoch, numCommits } = expected;
      for (const [name, value] of Object.entries({ generation, epoch, commits: numCommits, headed: 1 })) {
        target.prepare('INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)').run(name, value);
      }
    }
  } finally {
    closeQuietly(source);
    target.close(); // also moves its log into the file
  }
  flushFile(files, newPath);
  files.renameSync(newPath, readyPath);
  return report;
}

function tryOpen(path: string, options: RecoverOptions): SqlDatabase | null {
  try {
    return openDatabase(path, { ...options, isUnchecked: true }).database;
  } catch {
    return null;
  }
}

function flushFile(files: Files, path: string): void {
  const handle = files.openSync(path, 'r+');
  try {
    files.fsyncSync(handle);
  } finally {
    files.closeSync(handle);
  }
}
