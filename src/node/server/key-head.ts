import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { errnoOf } from '../../platform/node/files/file-errors.ts';
import { type Files, readWhole, replaceFile } from '../../platform/node/sealing/atomic-files.ts';

const MAX_HEAD_BYTES = 16 << 20;

const checksumOf = (value: object): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** Adds a checksum: a flipped byte may leave valid JSON with another tenant or scope. */
export const withChecksum = <T extends object>(value: T): T & { readonly checksum: string } => ({
  ...value,
  checksum: checksumOf(value),
});

/** Null: not an object, or its checksum is wrong. */
export function parseChecked(
  bytes: Uint8Array,
): { readonly value: Readonly<Record<string, unknown>>; readonly hasChecksum: boolean } | null {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return null;
    const { checksum, ...value } = parsed as Record<string, unknown>;
    if (checksum !== undefined && checksum !== checksumOf(value)) return null;
    return { value, hasChecksum: checksum !== undefined };
  } catch {
    return null;
  }
}

/** The ids and versions of all keys, so that a missing record or an older copy of one is noticed. It may lag, but never leads. */
export function openKeyHead(files: Files, folder: string) {
  const path = join(folder, 'keys.head');
  let cached: { readonly identity: string; readonly versions: Readonly<Record<string, number>> | 'damaged' } | null =
    null;

  function readAll(): Readonly<Record<string, number>> | 'damaged' {
    try {
      const { ino, size, mtimeNs } = files.lstatSync(path, { bigint: true });
      const identity = `${ino} ${size} ${mtimeNs}`;
      if (cached?.identity === identity) return cached.versions;
      const bytes = readWhole(files, path, MAX_HEAD_BYTES);
      const parsed = bytes === null ? null : parseChecked(bytes);
      const versions =
        parsed?.hasChecksum === true ? (parsed.value['versions'] as Readonly<Record<string, number>>) : 'damaged';
      cached = { identity, versions };
      return versions;
    } catch (error) {
      return errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR' ? {} : 'damaged';
    }
  }

  const write = (versions: Readonly<Record<string, number>>): void =>
    replaceFile(files, path, [Buffer.from(`${JSON.stringify(withChecksum({ versions }))}\n`)], true);

  return {
    path,
    readAll,
    /** 0: unknown. */
    versionOf(id: string): number {
      const versions = readAll();
      return versions === 'damaged' ? 0 : (versions[id] ?? 0);
    },
    note(id: string, version: number): void {
      const versions = readAll();
      write({ ...(versions === 'damaged' ? {} : versions), [id]: version });
    },
    /** False: it was not there. */
    forget(id: string): boolean {
      const versions = readAll();
      if (versions === 'damaged' || versions[id] === undefined) return false;
      const { [id]: _lost, ...others } = versions;
      write(others);
      return true;
    },
  };
}
