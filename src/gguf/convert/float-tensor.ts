import { RuvLLMError } from '../../core/errors.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { quantFormats, quantizeRow, rowBytes } from '../../quant/index.ts';
import { quote } from '../failures.ts';
import { keepsPrecision } from '../kept-tensors.ts';
import type { TensorToWrite } from '../writer.ts';

/** A tensor of a checkpoint, read as floats a few rows at a time. */
export interface FloatTensor {
  readonly name: string;
  /** GGUF order: dims[0] is contiguous. */
  readonly dims: readonly number[];
  /** Fills `out` with whole rows starting at `firstRow`. */
  readRows(firstRow: number, out: Float32Array): void;
}

/** Types that can be written. */
export const writableTypes: readonly TensorTypeName[] = Object.values(quantFormats)
  .filter((format) => format.quantize !== undefined)
  .map((format) => format.name);

/** Floats in memory per tensor: 4 MB, whatever the model's size. */
const CHUNK_FLOATS = 2 ** 20;

/**
 * The tensor as `type`, converted in chunks while it is written. Vectors, norms, routers and other small matrices stay F32: they are
 * the most sensitive. Rows that are not whole blocks of `type` become F16.
 */
export function convertTensor(tensor: FloatTensor, type: TensorTypeName): TensorToWrite {
  const { name, dims } = tensor;
  const [numCols = 0, ...outerDims] = dims;
  const numRows = outerDims.reduce((product, dim) => product * dim, 1);
  const isWhole = numCols % quantFormats[type].blockSize === 0;
  const outputType = dims.length === 1 || keepsPrecision(name) ? 'F32' : isWhole ? type : 'F16';
  const data = function* (): Iterable<Uint8Array> {
    const sizeBytes = rowBytes(outputType, numCols);
    const rowsPerChunk = Math.min(numRows, Math.max(1, Math.floor(CHUNK_FLOATS / numCols)));
    const values = new Float32Array(rowsPerChunk * numCols);
    const bytes = new Uint8Array(rowsPerChunk * sizeBytes);
    for (let first = 0; first < numRows; first += rowsPerChunk) {
      const count = Math.min(rowsPerChunk, numRows - first);
      tensor.readRows(first, values.subarray(0, count * numCols));
      for (let row = 0; row < count; row++) {
        const rowValues = values.subarray(row * numCols, (row + 1) * numCols);
        bytes.set(writeRow(outputType, rowValues, name, first + row), row * sizeBytes);
      }
      yield bytes.subarray(0, count * sizeBytes);
    }
  };
  return { name, type: outputType, dims, data };
}

function writeRow(type: TensorTypeName, values: Float32Array, name: string, row: number): Uint8Array {
  try {
    return quantizeRow(type, values);
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    throw new RuvLLMError('invalid_model_file', `tensor ${quote(name)}, row ${row}: ${error.message}`, {
      cause: error,
      data: { tensor: name, row },
    });
  }
}
