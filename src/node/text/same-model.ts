import type { Metadata } from '../../gguf/types.ts';
import { identifyFiles } from '../../platform/node/files/content-identity.ts';
import { modelPartPaths, openModelFile } from '../../platform/node/files/open-model-file.ts';

/** Identifies a model's files at load time: replaced files may have another vocabulary. */
export interface ModelFiles {
  readonly path: string;
  /** Empty: the files are deleted already. */
  readonly digest: string;
}

export function identifyModel(path: string): ModelFiles {
  try {
    return { path, digest: identifyFiles(modelPartPaths(path)).digest };
  } catch {
    return { path, digest: '' };
  }
}

/** Reads a loaded model's metadata in another thread; null: the files have changed. */
export function readSameModel<T>({ path, digest }: ModelFiles, read: (metadata: Metadata) => T): T | null {
  try {
    const gguf = openModelFile(path);
    try {
      const result = read(gguf.metadata);
      return identifyFiles(modelPartPaths(path)).digest === digest ? result : null;
    } finally {
      gguf.source.close();
    }
  } catch {
    return null; // the file was readable when the model was loaded
  }
}
