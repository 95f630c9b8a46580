import {
  type BlockFile,
  createVectorIndex,
  openVectorIndex,
  type VectorIndex,
  type VectorIndexOptions,
} from '../../../memory/vector-index/index.ts';
import { createKernelFactory } from '../kernels/kernel-factory.ts';

/** Makes the indexes of one memory, all with the same kernels. */
export interface VectorIndexes {
  create(dim: number): Promise<VectorIndex>;
  /** What a file has, and the change it was saved after; null: nothing that can be used. */
  open(dim: number, file: BlockFile): ReturnType<typeof openVectorIndex>;
}

/** Finds the kernels for this machine; `report` hears of native ones that must not be used. */
export async function createVectorIndexes(report: (message: string) => void): Promise<VectorIndexes> {
  const kernels = await createKernelFactory('auto', {
    numThreads: 1,
    types: [],
    warn: ({ message }) => report(message),
  });
  // Long builds let calls through that wait.
  const pause = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  const optionsOf = (dim: number): VectorIndexOptions => ({ kernels, dim, storage: 'int8', pause });
  return {
    create: (dim) => createVectorIndex(optionsOf(dim)),
    open: (dim, file) => openVectorIndex(optionsOf(dim), file),
  };
}
