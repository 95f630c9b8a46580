import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { KEY_SCOPES, type KeyRecord, type KeyRecords } from '../../server/keys/key-store.ts';
import { errnoOf, toFileError } from '../../platform/node/files/file-errors.ts';
import { dataFolder } from '../../platform/node/files/paths.ts';
import { type Files, listNames, readWhole, replaceFile } from '../../platform/node/sealing/atomic-files.ts';

const MAX_RECORD_BYTES = 16 * 1024;
/** Records in memory; more keys are read from their files again. */
const MAX_READ = 1000;
const NAME = /^([0-9a-f]{18})\.json$/;

/** The folder of this user's API keys. */
export function defaultKeyFolder(): string {
  return join(dataFolder(), 'api-keys');
}

/**
 * Key records, one file each, readable only by the owner. With one file each, command line and server never overwrite each
 * other, and a revoked key is rejected at the next request.
 */
export function openKeyFolder(folder: string, files: Files = nodeFiles): KeyRecords {
  const pathOf = (id: string): string => join(folder, `${id}.json`);

  /** The last record of each file, and the file's identity before the read. */
  const read = new Map<string, { readonly identity: string; readonly record: KeyRecord }>();

  function get(id: string): KeyRecord | null {
    if (!NAME.test(`${id}.json`)) return null; // the id is used as a file name
    const path = pathOf(id);
    try {
      const identity = identityOf(files, path);
      const known = read.get(id);
      if (known?.identity === identity) return known.record;
      const bytes = readWhole(files, path, MAX_RECORD_BYTES);
      const record = bytes === null ? null : parseRecord(bytes);
      if (record === null || record.id !== id) throw new RuvLLMError('io', `${path} is not the record of a key`);
      if (read.size >= MAX_READ) read.clear();
      read.set(id, { identity, record });
      return record;
    } catch (error) {
      if (error instanceof RuvLLMError) throw error;
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return null;
      throw toFileError(error, 'reading', path);
    }
  }

  return {
    get,
    put(record) {
      const path = pathOf(record.id);
      try {
        replaceFile(files, path, [new TextEncoder().encode(`${JSON.stringify(record)}\n`)], true);
      } catch (error) {
        throw toFileError(error, 'writing', path);
      }
    },
    list: () =>
      listNames(files, folder).flatMap((name) => {
        const id = NAME.exec(name)?.[1];
        const record = id === undefined ? null : get(id);
        return record === null ? [] : [record];
      }),
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

function parseRecord(bytes: Uint8Array): KeyRecord | null {
  let value: Partial<Record<keyof KeyRecord, unknown>>;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes)) as typeof value;
  } catch {
    return null;
  }
  const isText = (one: unknown): boolean => typeof one === 'string';
  const isGood =
    typeof value === 'object' &&
    value !== null &&
    [value.id, value.name, value.tenant, value.salt, value.hash].every(isText) &&
    Array.isArray(value.scopes) &&
    value.scopes.every((scope) => (KEY_SCOPES as readonly unknown[]).includes(scope)) &&
    typeof value.createdMs === 'number' &&
    (value.revokedMs === null || typeof value.revokedMs === 'number');
  return isGood ? (value as KeyRecord) : null;
}
