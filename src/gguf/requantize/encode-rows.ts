import { RuvLLMError } from '../../core/errors.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { quantizeRow } from '../../quant/index.ts';
import { writeErrorWeights } from '../../quant/error-weights.ts';
import type { ErrorFactor } from './gptq/factor.ts';
import { roundRows } from './gptq/round-rows.ts';
import type { ImportanceMatrix } from '../imatrix/imatrix.ts';
import type { QuantizeTensor } from './quantize-source.ts';

/** Whole rows of a tensor, to be stored as `type`. */
export interface RowsToEncode {
  readonly tensor: QuantizeTensor;
  readonly type: TensorTypeName;
  readonly values: Float32Array;
  readonly firstRow: number;
}

/** Encodes rows; the caller owns the result. */
export type RowEncoder = (rows: RowsToEncode) => Uint8Array;

/** Rounds with the smallest squared error of each block. */
export const plainEncoder: RowEncoder = ({ tensor, type, values, firstRow }) =>
  named(tensor, firstRow, () => quantizeRow(type, values));

/** Rounds with errors weighted by the importance of their columns; tensors without an entry are rounded plainly. */
export function importanceEncoder(matrix: ImportanceMatrix): RowEncoder {
  return (rows) => {
    const { tensor, type, values, firstRow } = rows;
    const importance = matrix.get(tensor.name);
    if (importance === undefined) return plainEncoder(rows);
    const weights = rowWeights(tensor, importance, values, firstRow);
    return named(tensor, firstRow, () => quantizeRow(type, values, weights));
  };
}

/** Rounds with corrections for the errors of the columns before; the rows belong to the matrix of `factor`. */
export function gptqEncoder(factor: ErrorFactor): RowEncoder {
  return ({ tensor, type, values, firstRow }) => named(tensor, firstRow, () => roundRows(type, values, factor));
}

/** The weights of the errors of some rows. */
export function rowWeights(
  tensor: QuantizeTensor,
  importance: Float32Array,
  values: Float32Array,
  firstRow: number,
): Float32Array {
  const weights = new Float32Array(values.length);
  const numCols = tensor.dims[0]!;
  const rowsPerMatrix = tensor.numElements / importance.length;
  for (let row = 0; row < values.length / numCols; row++) {
    const matrix = Math.floor((firstRow + row) / rowsPerMatrix);
    const [start, end] = [row * numCols, (row + 1) * numCols];
    writeErrorWeights(values.subarray(start, end), importance, matrix * numCols, numCols, weights.subarray(start, end));
  }
  return weights;
}

/** Throws unless every entry that names a tensor of the model has its columns, and at least one does. */
export function checkImatrix(tensors: readonly QuantizeTensor[], matrix: ImportanceMatrix): void {
  let numMatches = 0;
  for (const { name, dims } of tensors) {
    const numValues = matrix.get(name)?.length;
    if (numValues === undefined) continue;
    numMatches++;
    const expected = dims[0]! * (dims[2] ?? 1);
    if (numValues === expected) continue;
    throw new RuvLLMError(
      'invalid_option',
      `the importance matrix has ${numValues} values for ${name}, the tensor needs ${expected}: it belongs to another model`,
      { data: { tensor: name, numValues, expected } },
    );
  }
  if (numMatches > 0) return;
  throw new RuvLLMError(
    'invalid_option',
    `the importance matrix has ${matrix.size} entries, none of a tensor of this model: it belongs to another model`,
    { data: { numEntries: matrix.size } },
  );
}

/** Names the tensor of an error. */
function named(tensor: QuantizeTensor, firstRow: number, encode: () => Uint8Array): Uint8Array {
  try {
    return encode();
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    const rows = firstRow === 0 ? '' : ` (from row ${firstRow})`;
    throw new RuvLLMError(error.code, `tensor ${tensor.name}${rows}: ${error.message}`, { cause: error });
  }
}
