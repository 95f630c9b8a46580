import { floatToHalf } from '../../core/half.ts';
import type { MatrixSource } from '../../kernels/contract.ts';
import { dequantizeRow, rowBytes } from '../../quant/index.ts';

/**
 * The transposed matrix, for products with gradients: F32 stays exact, other types become F16, whose rounding is far below that of the
 * quantized model. Gradients are not rounded with either type.
 */
export function transposedSource(source: MatrixSource): MatrixSource {
  const isExact = source.type === 'F32';
  let bytes: Uint8Array | null = null;
  return {
    name: `${source.name} transposed`,
    type: isExact ? 'F32' : 'F16',
    numRows: source.numCols,
    numCols: source.numRows,
    readInto(target, byteOffset) {
      bytes ??= isExact ? transposeToFloat(source) : transposeToHalf(source);
      target.set(bytes.subarray(byteOffset, byteOffset + target.length));
      // The last bytes were read: packs read forwards, and this copy is as large as the matrix.
      if (byteOffset + target.length >= bytes.length) bytes = null;
    },
  };
}

function transposeToFloat(source: MatrixSource): Uint8Array {
  const { numRows, numCols } = source;
  const values = new Float32Array(numRows * numCols);
  eachRow(source, (row, cells) => {
    for (let col = 0; col < numCols; col++) values[col * numRows + row] = cells[col]!;
  });
  return new Uint8Array(values.buffer);
}

function transposeToHalf(source: MatrixSource): Uint8Array {
  const { numRows, numCols } = source;
  const values = new Uint16Array(numRows * numCols);
  eachRow(source, (row, cells) => {
    for (let col = 0; col < numCols; col++) values[col * numRows + row] = floatToHalf(cells[col]!);
  });
  return new Uint8Array(values.buffer);
}

function eachRow(source: MatrixSource, visit: (row: number, cells: Float32Array) => void): void {
  const { type, numRows, numCols } = source;
  const bytes = new Uint8Array(rowBytes(type, numCols));
  const cells = new Float32Array(numCols);
  for (let row = 0; row < numRows; row++) {
    source.readInto(bytes, row * bytes.length);
    dequantizeRow(type, bytes, cells, numCols);
    visit(row, cells);
  }
}
