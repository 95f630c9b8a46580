import { RuvLLMError } from '../core/errors.ts';
import { quantFormats } from '../quant/index.ts';
import type { MatrixSource } from './contract.ts';

/** Bytes of a matrix in GGUF blocks; throws `invalid_model_file` with the numbers if no such matrix can exist. */
export function checkedMatrixBytes(source: Pick<MatrixSource, 'name' | 'type' | 'numRows' | 'numCols'>): number {
  const { name, type, numRows, numCols } = source;
  const { blockSize, blockBytes } = quantFormats[type];
  const sizeBytes = (numRows * numCols * blockBytes) / blockSize;
  const isPossible =
    Number.isSafeInteger(numRows) &&
    numRows > 0 &&
    Number.isSafeInteger(numCols) &&
    numCols > 0 &&
    numCols % blockSize === 0 &&
    Number.isSafeInteger(sizeBytes);
  if (!isPossible) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${name}: ${numRows} rows of ${numCols} columns cannot be stored as ${type} (blocks of ${blockSize})`,
      { data: { name, type, numRows, numCols, blockSize } },
    );
  }
  return sizeBytes;
}
