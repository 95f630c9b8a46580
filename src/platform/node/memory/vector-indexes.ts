import {
  type BlockFile,
  createVectorIndex,
  openVectorIndex,
  type VectorIndex,
  type VectorIndexOptions,
} from '../../../memory/vector-index/index.ts';
import { createKernelFactory } from '../kernels/kernel-factory.ts';

/** Creates the indexes of one memory with the same kernels. */
export interface VectorIndexes {
  create(dim: number): Promise<VectorIndex>;
  /** Null: no usable index. */
  open(dim: number, file: BlockFile): ReturnType<typeof openVectorIndex>;
}

/** Chooses kernels for this machine; calls `report` when native ones cannot be used. */
export async function createVectorIndexes(report: (message: string) => void): Promise<VectorIndexes> {
  const kernels = await createKernelFactory('auto', {
    numThreads: 1,
    types: [],
    warn: ({ message }) => report(message),
  });
  // Lets waiting calls run during long builds.
  const pause = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  const optionsOf = (dim: number): VectorIndexOptions => ({ kernels, dim, storage: 'int8', pause });
  return {
    create: (dim) => createVectorIndex(optionsOf(dim)),
    open: (dim, file) => openVectorIndex(optionsOf(dim), file),
  };
}
