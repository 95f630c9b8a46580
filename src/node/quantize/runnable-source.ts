import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { convertFolder } from '../convert-folder.ts';

/** A source as a file that can be run. */
export interface RunnableSource {
  path(): string;
  /** Removes temporary files. */
  dispose(): void;
}

/** Whether a path is the folder of a checkpoint. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** A folder cannot be run: on the first use, it is converted to a temporary file beside `path`. */
export function createRunnableSource(sourcePath: string, path: string): RunnableSource {
  let folder: string | null = null;
  return {
    path() {
      if (!isFolder(sourcePath)) return sourcePath;
      if (folder === null) {
        folder = mkdtempSync(join(dirname(path), '.ruvllm-source-'));
        convertFolder({ folder: sourcePath, path: join(folder, 'source.gguf'), type: 'F16' });
      }
      return join(folder, 'source.gguf');
    },
    dispose() {
      if (folder !== null) rmSync(folder, { recursive: true, force: true });
      folder = null;
    },
  };
}
