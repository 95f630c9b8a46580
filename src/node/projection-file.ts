import { openGguf, writeGguf } from '../gguf/index.ts';
import { describeProjectionFile, readProjection } from '../learning/embedding-training/projection-file.ts';
import type { EmbeddingProjection } from '../memory/embedder/projection.ts';
import { writeWhole } from '../platform/node/files/file-sink.ts';
import { openFileSource } from '../platform/node/files/file-source.ts';

/** Reads a projection of `trainEmbeddings`. */
export function readProjectionFile(path: string): EmbeddingProjection {
  const source = openFileSource(path);
  try {
    return readProjection(openGguf(source));
  } finally {
    source.close();
  }
}

/** Writes a projection whole or not at all; returns the size of the file in bytes. */
export function writeProjectionFile(path: string, projection: EmbeddingProjection, name = 'projection'): number {
  return writeWhole(path, (sink) => writeGguf(describeProjectionFile(projection, name), sink));
}
