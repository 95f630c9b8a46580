import * as nodeFiles from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import {
  listNames,
  readWhole,
  removeAbandoned,
  replaceFile,
  flushFolder,
  type Files,
} from '../sealing/atomic-files.ts';
import { claimFolder } from './folder-header.ts';
import { openKeyRing, type TenantKeys } from '../sealing/key-ring.ts';
import { masterKeyOption } from '../sealing/master-key.ts';
import { openFile, OVERHEAD_BYTES, sealFile } from '../sealing/sealed-file.ts';
import { frame, keyedName } from '../sealing/sealing.ts';

/** Of one record with its name: these are small, and read whole. */
const MAX_RECORD_BYTES = 2 ** 24;
const RECORD = /^[0-9a-f]{64}\.record$/;

export interface SealedRecordsOptions {
  readonly folder: string;
  /** 32 bytes: see `readOrCreateMasterKey`. */
  readonly masterKey: Uint8Array;
}

/**
 * Small things to be found again by name, sealed for their tenant. State, not cache: what `put` has returned from survives a power
 * failure, and what the disk refuses is thrown.
 */
export interface SealedRecords {
  /** Replaces the record of this name at once: a reader sees the old one or the new one. */
  put(tenant: string, kind: string, name: string, bytes: Uint8Array): void;
  /** The record, or null when there is none; throws `io` when it is there and damaged. */
  get(tenant: string, kind: string, name: string): Uint8Array | null;
  /** True when there was one. */
  delete(tenant: string, kind: string, name: string): boolean;
  /** The names of all records of a kind that can be read, in the order of their letters. */
  list(tenant: string, kind: string): string[];
  /** Forgets a tenant for good: the key first, then the records. */
  eraseTenant(tenant: string): void;
  /** The records of a tenant, also unreadable ones. */
  countTenant(tenant: string): number;
  /** Paths of the records of a tenant with these names, of all kinds. */
  pathsOf(tenant: string, names: ReadonlySet<string>): string[];
  /** Deletes these records of all kinds. */
  deleteNames(tenant: string, names: ReadonlySet<string>): void;
}

/** Opens a folder of records, making it when it is not there; throws when it is not ours. */
export function openSealedRecords(options: SealedRecordsOptions, files: Files = nodeFiles): SealedRecords {
  const folder = resolve(options.folder);
  const ring = openKeyRing(files, folder, masterKeyOption(options.masterKey, 'masterKey'));
  const refused = claimFolder(files, folder, 'records.json', ring);
  if (refused !== null) throw new RuvLLMError('invalid_option', refused, { data: { option: 'folder', path: folder } });
  const root = join(folder, 'records');
  for (const path of [folder, join(folder, 'keys'), ...foldersBelow(files, root)]) {
    removeAbandoned(files, path, listNames(files, path));
  }

  function placeOf(keys: TenantKeys, tenant: string, kind: string, name: string) {
    const id = keyedName(keys.naming, frame('record', kind, name));
    return { id, path: join(kindFolder(keys, tenant, kind), `${id}.record`) };
  }
  const kindFolder = (keys: TenantKeys, tenant: string, kind: string): string =>
    join(root, ring.idOf(tenant), keyedName(keys.naming, frame('kind', kind)));

  /** Name and content of the record in a file, or null when that is not a whole record. */
  function readRecord(keys: TenantKeys, id: string, path: string): { name: string; bytes: Uint8Array } | null {
    const file = readWhole(files, path, MAX_RECORD_BYTES + OVERHEAD_BYTES);
    const opened = file && openFile({ kind: 'record', key: keys.sealing, name: id }, file);
    return opened && splitRecord(opened.bytes);
  }

  function pathsOf(tenant: string, names: ReadonlySet<string>): string[] {
    const keys = names.size === 0 ? null : ring.findKeys(tenant);
    if (keys === null) return [];
    const kinds = listNames(files, join(root, ring.idOf(tenant)));
    const paths = kinds.flatMap((kind) => {
      const path = join(root, ring.idOf(tenant), kind);
      return listNames(files, path).filter((file) => RECORD.test(file)).map((file) => join(path, file)); // prettier-ignore
    });
    const nameIn = (path: string): string | undefined =>
      unlessAbsent(() => readRecord(keys, basename(path).slice(0, 64), path))?.name;
    return paths.filter((path) => names.has(nameIn(path) ?? ''));
  }

  return {
    pathsOf,
    deleteNames(tenant, names) {
      for (const path of pathsOf(tenant, names)) {
        attempt('deleting the record', path, () => files.rmSync(path, { force: true }));
        flushFolder(files, join(path, '..'));
      }
    },
    put(tenant, kind, name, bytes) {
      const plain = Buffer.concat([frame(name), bytes]);
      if (plain.length > MAX_RECORD_BYTES) {
        throw new RuvLLMError('invalid_option', `a record has ${plain.length} bytes, at most ${MAX_RECORD_BYTES}`, {
          data: { sizeBytes: plain.length, limitBytes: MAX_RECORD_BYTES },
        });
      }
      const keys = ring.keysOf(tenant);
      const { id, path } = placeOf(keys, tenant, kind, name);
      attempt('writing the record', path, () =>
        replaceFile(files, path, sealFile({ kind: 'record', key: keys.sealing, name: id }, 0, plain), true),
      );
    },
    get(tenant, kind, name) {
      const keys = ring.findKeys(tenant);
      if (keys === null) return null;
      const { id, path } = placeOf(keys, tenant, kind, name);
      const record = attempt('reading the record', path, () => unlessAbsent(() => readRecord(keys, id, path)));
      if (record === undefined) return null;
      if (record?.name === name) return record.bytes;
      throw new RuvLLMError('io', `the record ${path} is damaged`, { data: { path } });
    },
    delete(tenant, kind, name) {
      const keys = ring.findKeys(tenant);
      if (keys === null) return false;
      const { path } = placeOf(keys, tenant, kind, name);
      return attempt('deleting the record', path, () => {
        if (unlessAbsent(() => (files.unlinkSync(path), true)) === undefined) return false;
        flushFolder(files, join(path, '..'));
        return true;
      });
    },
    list(tenant, kind) {
      const keys = ring.findKeys(tenant);
      if (keys === null) return [];
      const path = kindFolder(keys, tenant, kind);
      return attempt('listing the records', path, () =>
        listNames(files, path)
          .filter((file) => RECORD.test(file))
          .flatMap((file) => unlessAbsent(() => readRecord(keys, file.slice(0, 64), join(path, file)))?.name ?? [])
          .sort(),
      );
    },
    countTenant(tenant) {
      const path = join(root, ring.idOf(tenant));
      if (!files.existsSync(path)) return 0;
      return files.readdirSync(path, { recursive: true }).filter((name) => String(name).endsWith('.record')).length;
    },
    eraseTenant(tenant) {
      ring.erase(tenant);
      const path = join(root, ring.idOf(tenant));
      attempt('erasing the records', path, () => files.rmSync(path, { recursive: true, force: true }));
    },
  };
}

function splitRecord(plain: Uint8Array): { name: string; bytes: Uint8Array } | null {
  const end = 2 + (plain[0] ?? 0) + (plain[1] ?? 0) * 256;
  if (end > plain.length) return null;
  return { name: Buffer.from(plain.subarray(2, end)).toString('utf8'), bytes: plain.subarray(end) };
}

function foldersBelow(files: Files, root: string): string[] {
  return listNames(files, root).flatMap((tenant) =>
    listNames(files, join(root, tenant)).map((kind) => join(root, tenant, kind)),
  );
}

/** Undefined when the file is not there. */
function unlessAbsent<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function attempt<T>(doing: string, path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw toFileError(error, doing, path);
  }
}
