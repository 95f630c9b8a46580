import { RuvLLMError } from '../core/errors.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats } from './registry.ts';

/** Bytes of a row of `numCols` values; throws `invalid_model_file` unless the row is a whole number of blocks. */
export function rowBytes(type: TensorTypeName, numCols: number): number {
  const { blockSize, blockBytes } = quantFormats[type];
  const numBytes = (numCols / blockSize) * blockBytes;
  if (numCols < 0 || numCols % blockSize !== 0 || !Number.isSafeInteger(numBytes)) {
    throw new RuvLLMError(
      'invalid_model_file',
      `a row of ${numCols} values is not a multiple of the ${type} block size ${blockSize}`,
      { data: { type, numCols, blockSize } },
    );
  }
  return numBytes;
}

/** Offsets into the source and the target, in elements of their array; both default to 0. */
export interface RowOffsets {
  byteOffset?: number;
  valueOffset?: number;
}

/** Decodes one row into `out`, after checking the bounds of both arrays. */
export function dequantizeRow(
  type: TensorTypeName,
  bytes: Uint8Array,
  out: Float32Array,
  numCols: number,
  { byteOffset = 0, valueOffset = 0 }: RowOffsets = {},
): void {
  checkFits(`${type} bytes`, byteOffset, rowBytes(type, numCols), bytes.length);
  checkFits('values', valueOffset, numCols, out.length);
  const format = quantFormats[type];
  format.dequantize(bytes, byteOffset, out, valueOffset, numCols / format.blockSize);
}

/**
 * Encodes `values` as one row, or several of whole blocks; `weights` as in `QuantFormat.quantize`. Throws `unsupported` if the type is read-only, and `invalid_option` if a value is not
 * finite or too large for the type's half scales, which would otherwise be written as infinity.
 */
export function quantizeRow(
  type: TensorTypeName,
  values: Float32Array,
  weights: Float32Array | null = null,
): Uint8Array {
  const format = quantFormats[type];
  const out = new Uint8Array(rowBytes(type, values.length));
  if (format.quantize === undefined)
    throw new RuvLLMError('unsupported', `quantizing to ${type} is not supported`, { data: { type } });
  checkFinite(type, values, values);
  format.quantize(values, 0, out, 0, values.length / format.blockSize, weights);
  const readBack = new Float32Array(values.length);
  format.dequantize(out, 0, readBack, 0, values.length / format.blockSize);
  checkFinite(type, readBack, values);
  return out;
}

function checkFits(what: string, offset: number, needed: number, length: number): void {
  if (Number.isSafeInteger(offset) && offset >= 0 && offset + needed <= length) return;
  throw new RuvLLMError('invalid_option', `${what} ${offset} to ${offset + needed} exceed an array of ${length}`, {
    data: { offset, needed, length },
  });
}

/** Throws `invalid_option` if an entry of `checked` is not finite; the message has the entry of `values`. */
export function checkFinite(type: TensorTypeName, checked: Float32Array, values: Float32Array): void {
  const index = checked.findIndex((value) => !Number.isFinite(value));
  if (index === -1) return;
  throw new RuvLLMError('invalid_option', `value ${values[index]} at index ${index} cannot be stored as ${type}`, {
    data: { type, index },
  });
}
