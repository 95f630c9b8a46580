import type { SpeedShape } from '../kernels/measure-kernels.ts';
import type { GgufFile } from '../gguf/types.ts';

/** The matrices of a model file; those of experts as one. One-dimensional tensors (norms, biases) are read as floats. */
export function listMatrices(gguf: GgufFile): SpeedShape[] {
  return [...gguf.tensors.values()]
    .filter(({ dims }) => dims.length > 1)
    .map(({ type, dims }) => ({ type, numCols: dims[0]!, numRows: dims[1]! }));
}
