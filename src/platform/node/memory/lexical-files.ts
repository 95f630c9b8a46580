import { join } from 'node:path';
import { createLexicalIndex } from '../../../memory/lexical/lexical-index.ts';
import { decodeSnapshot, encodeSnapshot } from '../../../memory/lexical/snapshot-bytes.ts';
import type { LexicalFiles, LexicalSetRef } from '../../../memory/store/lexical-sets.ts';
import { kindNumber } from '../../../memory/store/sqlite/record-row.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import { type Files, readWhole, replaceFile } from '../sealing/atomic-files.ts';

/** A larger one is rebuilt from the rows. */
const MAX_FILE_BYTES = 2 ** 30;

/** Lexical indexes as sealed files in `<folder>/lexical/<tenant>`; a lost one is rebuilt from the rows. */
export function openLexicalFiles(folder: string, files: Files): LexicalFiles {
  const root = join(folder, 'lexical');
  const pathOf = ({ tenant, kind }: LexicalSetRef): string => join(root, tenant.id, `${kindNumber(kind)}.terms`);
  const associated = ({ tenant, kind }: LexicalSetRef): Uint8Array =>
    new TextEncoder().encode(JSON.stringify(['lexical', tenant.id, kind]));
  const attempt = <T>(doing: string, path: string, action: () => T): T => {
    try {
      return action();
    } catch (error) {
      throw toFileError(error, doing, path);
    }
  };

  function read(path: string): Uint8Array | null {
    try {
      return readWhole(files, path, MAX_FILE_BYTES);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null;
      throw toFileError(error, 'reading a lexical index', path);
    }
  }

  return {
    load(set) {
      const sealed = read(pathOf(set));
      const plain = sealed === null ? null : set.tenant.sealer.unseal(associated(set), sealed);
      const saved = plain === null ? null : decodeSnapshot(plain);
      return saved && { index: createLexicalIndex(saved.snapshot), seq: saved.seq };
    },
    save(set, index, seq) {
      const sealed = set.tenant.sealer.seal(associated(set), encodeSnapshot({ snapshot: index.snapshot(), seq }));
      const path = pathOf(set);
      attempt('writing a lexical index', path, () => replaceFile(files, path, [sealed], true));
    },
    removeTenant(tenantId) {
      const path = join(root, tenantId);
      attempt('removing lexical indexes', path, () => files.rmSync(path, { recursive: true, force: true }));
    },
  };
}
