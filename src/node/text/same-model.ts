import type { Metadata } from '../../gguf/types.ts';
import { identifyFiles } from '../../platform/node/files/content-identity.ts';
import { modelPartPaths, openModelFile } from '../../platform/node/files/open-model-file.ts';

/** A model's files as they were when it was loaded: others have another vocabulary, perhaps. */
export interface ModelFiles {
  readonly path: string;
  /** Empty: they are gone already, and no other thread will find them either. */
  readonly digest: string;
}

export function identifyModel(path: string): ModelFiles {
  try {
    return { path, digest: identifyFiles(modelPartPaths(path)).digest };
  } catch {
    return { path, digest: '' };
  }
}

/** Reads a loaded model's metadata in another thread; null: the files are not the same any more. */
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
    return null; // the same file was good when the model was loaded
  }
}
