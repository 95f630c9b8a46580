import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { VectorIndexFiles, VectorSetRef } from '../../../memory/store/vector-sets.ts';
import { toFileError } from '../files/file-errors.ts';
import type { Files } from '../sealing/atomic-files.ts';
import type { MemoryFolder } from './memory-folder.ts';
import { openVectorFile, type VectorFile } from './vector-file.ts';
import type { VectorIndexes } from './vector-indexes.ts';

/** Open files: as many as there are open indexes. One that was closed is written whole the next time. */
const MAX_OPEN = 64;

export interface IndexFilesOptions extends Pick<MemoryFolder, 'sealingKeyOf'> {
  readonly folder: string;
  readonly files: Files;
  /** Asked when an index is opened, for they are made with the first. */
  readonly indexes: () => Promise<VectorIndexes>;
}

/** Vector indexes as sealed files in `<folder>/vectors/<tenant>`: what is lost here is built again from the rows. */
export function openIndexFiles({ folder, files, sealingKeyOf, indexes }: IndexFilesOptions): VectorIndexFiles {
  const root = join(folder, 'vectors');
  /** The one used last is last. */
  const open = new Map<number, VectorFile>();

  function obtain(set: VectorSetRef): VectorFile {
    const { no, tenantId, dim } = set;
    const key = sealingKeyOf(tenantId);
    if (key === null) throw new RuvLLMError('not_found', 'the tenant of a vector index has no key');
    const known = open.get(no);
    open.delete(no);
    const file =
      known ??
      openVectorFile({
        path: join(root, tenantId, `${no}.vectors`),
        key,
        identity: ['vectors', tenantId, String(no), String(dim)],
        files,
      });
    open.set(no, file);
    for (const [oldest, { close }] of open) {
      if (open.size <= MAX_OPEN) break;
      open.delete(oldest);
      close();
    }
    return file;
  }

  return {
    async load(set) {
      const { open: openIndex } = await indexes();
      return openIndex(set.dim, obtain(set));
    },
    async save(set, index, seq) {
      index.save(obtain(set), seq);
    },
    async removeTenant(tenantId) {
      // Those of others are written whole the next time; erasing is rare.
      for (const file of open.values()) file.close();
      open.clear();
      const path = join(root, tenantId);
      try {
        files.rmSync(path, { recursive: true, force: true });
      } catch (error) {
        throw toFileError(error, 'removing vector indexes', path);
      }
    },
  };
}
