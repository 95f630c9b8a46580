import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { createLruMap } from '../../../memory/common/lru-map.ts';
import type { VectorIndexFiles, VectorSetRef } from '../../../memory/store/vector-sets.ts';
import { toFileError } from '../files/file-errors.ts';
import type { Files } from '../sealing/atomic-files.ts';
import type { MemoryFolder } from './memory-folder.ts';
import { openVectorFile, type VectorFile } from './vector-file.ts';
import type { VectorIndexes } from './vector-indexes.ts';

/** As many as there are open indexes. After closing, the next save writes the whole file. */
const MAX_OPEN = 64;

interface IndexFilesOptions extends Pick<MemoryFolder, 'sealingKeyOf'> {
  readonly folder: string;
  readonly files: Files;
  /** Called when an index is opened; created with the first. */
  readonly indexes: () => Promise<VectorIndexes>;
}

/** Vector indexes as sealed files in `<folder>/vectors/<tenant>`; a lost one is rebuilt from the rows. */
export function openIndexFiles({ folder, files, sealingKeyOf, indexes }: IndexFilesOptions): VectorIndexFiles {
  const root = join(folder, 'vectors');
  const open = createLruMap<VectorFile>(MAX_OPEN, (file) => file.close());

  function obtain(set: VectorSetRef): VectorFile {
    const { no, tenantId, dim } = set;
    const key = sealingKeyOf(tenantId);
    if (key === null) throw new RuvLLMError('not_found', 'the tenant of a vector index has no key');
    const file =
      open.get(String(no)) ??
      openVectorFile({
        path: join(root, tenantId, `${no}.vectors`),
        key,
        identity: ['vectors', tenantId, String(no), String(dim)],
        files,
      });
    open.set(String(no), file);
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
      // Those of others too, which costs a whole write of each; erasure is rare.
      for (const [no, file] of open.entries()) {
        file.close();
        open.delete(no);
      }
      const path = join(root, tenantId);
      try {
        files.rmSync(path, { recursive: true, force: true });
      } catch (error) {
        throw toFileError(error, 'removing vector indexes', path);
      }
    },
  };
}
