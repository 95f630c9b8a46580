import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { KEY_SCOPES, type KeyRecord, type KeyRecords } from '../../server/keys/key-store.ts';
import { errnoOf, toFileError } from '../../platform/node/files/file-errors.ts';
import { dataFolder } from '../../platform/node/files/paths.ts';
import { openKeyHead, parseChecked, withChecksum } from './key-head.ts';
import { type Files, listNames, readWhole, replaceFile } from '../../platform/node/sealing/atomic-files.ts';

const MAX_RECORD_BYTES = 16 * 1024;
/** Records in memory; more keys are read from their files again. */
const MAX_READ = 1000;
/** How often the folder is compared with its head. */
const SCAN_EVERY_MS = 30_000;
const NAME = /^([0-9a-f]{18})\.json$/;

/** The folder of this user's API keys. */
export function defaultKeyFolder(): string {
  return join(dataFolder(), 'api-keys');
}

/**
 * Key records, one file each, readable only by the owner. With one file each, command line and server never overwrite each
 * other, and a revoked key is rejected at the next request. A record that is damaged, or older than its version in `keys.head`, is
 * moved aside: its key is refused, the others work.
 */
export function openKeyFolder(folder: string, files: Files = nodeFiles, now: () => number = Date.now): KeyRecords {
  const pathOf = (id: string): string => join(folder, `${id}.json`);
  const head = openKeyHead(files, folder);
  /** By id or file name. */
  const damaged = new Map<string, string>();
  let lastScanMs = -Infinity;

  /** The last record of each file, and the file's identity before the read. */
  const read = new Map<string, { readonly identity: string; readonly record: StoredKey }>();

  function readRecord(id: string): StoredKey | null {
    if (!NAME.test(`${id}.json`)) return null; // the id is used as a file name
    const path = pathOf(id);
    try {
      const identity = identityOf(files, path);
      const known = read.get(id);
      if (known?.identity === identity) return known.record;
      const bytes = readWhole(files, path, MAX_RECORD_BYTES);
      const record = bytes === null ? null : parseRecord(bytes);
      if (record === null || record.id !== id) return refuse(id, 'is not the record of a key');
      if (record.version < head.versionOf(id)) return refuse(id, 'is older than it was');
      if (read.size >= MAX_READ) read.clear();
      read.set(id, { identity, record });
      return record;
    } catch (error) {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return null;
      throw toFileError(error, 'reading', path);
    }
  }

  /** Moves the file aside; null: its key is refused. */
  function refuse(id: string, what: string): null {
    const aside = `${pathOf(id)}.damaged-${now()}`;
    let place = `moved to ${aside}`;
    try {
      files.renameSync(pathOf(id), aside);
    } catch {
      place = 'left in place'; // a folder that cannot be written: refused all the same
    }
    damaged.set(id, `the API key ${id} is refused: ${pathOf(id)} ${what}, ${place}`);
    return null;
  }

  const get = (id: string): KeyRecord | null => toPublic(readRecord(id));

  const listIds = (): string[] => listNames(files, folder).flatMap((name) => NAME.exec(name)?.[1] ?? []);

  function scan(): void {
    lastScanMs = now();
    const versions = head.readAll();
    if (versions === 'damaged')
      damaged.set('head', `${head.path} is damaged: it is unknown whether API keys are missing`);
    const present = new Set(listIds().filter((id) => readRecord(id) !== null));
    for (const id of versions === 'damaged' ? [] : Object.keys(versions)) {
      if (!present.has(id) && !damaged.has(id)) damaged.set(id, `the API key ${id} is refused: its record ${pathOf(id)} is missing`); // prettier-ignore
      // It was put back.
      if (present.has(id)) damaged.delete(id);
    }
  }

  return {
    get,
    put(record) {
      const path = pathOf(record.id);
      try {
        const version = Math.max(readRecord(record.id)?.version ?? 0, head.versionOf(record.id)) + 1;
        const text = `${JSON.stringify(withChecksum({ ...record, version }))}\n`;
        replaceFile(files, path, [new TextEncoder().encode(text)], true);
        head.note(record.id, version); // after the record, so that it never leads
        damaged.delete(record.id);
      } catch (error) {
        // Without the path, which an API client must not learn; the cause has it, for the log.
        const cause = toFileError(error, 'writing', path);
        const reason = cause.code === 'disk_full' ? 'its disk is full' : 'its disk cannot be written';
        const code = cause.code === 'disk_full' ? 'disk_full' : 'io';
        throw new RuvLLMError(code, `the API key cannot be stored: ${reason}`, { cause, isRetryable: true });
      }
    },
    list: () =>
      listIds().flatMap((id) => {
        const record = get(id);
        return record === null ? [] : [record];
      }),
    forget(id) {
      damaged.delete(id);
      return readRecord(id) === null && head.forget(id);
    },
    problems() {
      if (now() - lastScanMs >= SCAN_EVERY_MS) scan();
      return [...damaged.values()];
    },
  };
}

/**
 * Changes with the content: files are replaced, never overwritten, and a revoked record is longer. Every request checks it; that
 * costs a fifth of reading.
 */
function identityOf(files: Files, path: string): string {
  const { dev, ino, size, mtimeNs, ctimeNs } = files.lstatSync(path, { bigint: true });
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}

/** A record with the number of its writes; 0: of a release that did not count them. */
interface StoredKey extends KeyRecord {
  readonly version: number;
}

const toPublic = (record: StoredKey | null): KeyRecord | null => {
  if (record === null) return null;
  const { version: _version, ...shown } = record;
  return shown;
};

const FIELDS = new Set([
  'id',
  'name',
  'tenant',
  'scopes',
  'createdMs',
  'revokedMs',
  'salt',
  'hash',
  'version',
  'checksum',
]);

function parseRecord(bytes: Uint8Array): StoredKey | null {
  const parsed = parseChecked(bytes);
  if (parsed === null) return null;
  const value: Partial<Record<keyof StoredKey, unknown>> = parsed.value;
  const isText = (one: unknown): boolean => typeof one === 'string';
  const isGood =
    [value.id, value.name, value.tenant, value.salt, value.hash].every(isText) &&
    Array.isArray(value.scopes) &&
    value.scopes.every((scope) => (KEY_SCOPES as readonly unknown[]).includes(scope)) &&
    typeof value.createdMs === 'number' &&
    (value.revokedMs === null || typeof value.revokedMs === 'number') &&
    // Without a checksum it is of an earlier release; a changed name of that field is unknown.
    (parsed.hasChecksum ? Number.isSafeInteger(value.version) : value.version === undefined) &&
    Object.keys(value).every((name) => FIELDS.has(name));
  return isGood ? ({ ...value, version: value.version ?? 0 } as StoredKey) : null;
}
