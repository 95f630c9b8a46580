import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { RemoteObjects } from '../../../memory/remote/protocol.ts';
import type { TenantKeyRing } from '../../../memory/store/sealer.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import { type Files, listNames, readWhole, replaceFile } from '../sealing/atomic-files.ts';

/** More than 1000 compressed entries of 128 Ki characters. */
const MAX_SEGMENT_BYTES = 2 ** 29;
const NAME = /^[0-9]{12}-[0-9a-f]{24}\.seg$/;

/** Archived segments of the audit log as sealed files in `<folder>/archive`. Requires the folder's lock. */
export function openArchiveFiles(files: Files, folder: string, keys: TenantKeyRing): RemoteObjects['archive'] {
  const pathOf = (name: string): string => {
    if (!NAME.test(name)) throw new RuvLLMError('internal', 'invalid name of a segment');
    return join(folder, 'archive', name);
  };
  const associated = (context: string): Uint8Array => new TextEncoder().encode(`archive\0${context}`);
  const attempt = <T>(doing: string, path: string, action: () => T): T => {
    try {
      return action();
    } catch (error) {
      throw toFileError(error, doing, path);
    }
  };
  const before = attempt('listing the segments', join(folder, 'archive'), () =>
    listNames(files, join(folder, 'archive')).filter((name) => NAME.test(name)),
  );
  return {
    leftBehind: async () => before,
    async write(name, bytes) {
      const path = pathOf(name);
      attempt('writing the segment', path, () => replaceFile(files, path, [bytes], true));
    },
    async read(name) {
      const path = pathOf(name);
      try {
        return readWhole(files, path, MAX_SEGMENT_BYTES);
      } catch (error) {
        if (errnoOf(error) === 'ENOENT') return null;
        throw toFileError(error, 'reading the segment', path);
      }
    },
    async delete(name) {
      const path = pathOf(name);
      attempt('deleting the segment', path, () => files.rmSync(path, { force: true }));
    },
    seal: async (tenant, bytes, context) => keys.obtain(keys.idOf(tenant)).seal(associated(context), bytes),
    async unseal(tenant, bytes, context) {
      const plain = keys.find(keys.idOf(tenant))?.unseal(associated(context), bytes) ?? null;
      if (plain === null)
        throw new RuvLLMError('io', 'a segment of the audit log cannot be decrypted with the key of its tenant');
      return plain;
    },
  };
}
