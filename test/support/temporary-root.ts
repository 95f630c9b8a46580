import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Such a folder is no leftover: a worker that is stopped does not reach its end, and the run removes it. */
export const KEPT = 'kept-';

/** Folders below a temporary folder of this process, removed at its end; `newFolder` returns a path that does not exist yet. */
export function createTemporaryRoot(prefix: string): { newFolder(): string } {
  let root: string | undefined;
  let numFolders = 0;
  return {
    newFolder() {
      if (root === undefined) {
        const path = mkdtempSync(join(tmpdir(), `${KEPT}${prefix}`));
        process.once('exit', () => rmSync(path, { recursive: true, force: true }));
        root = path;
      }
      return join(root, `folder-${numFolders++}`);
    },
  };
}
