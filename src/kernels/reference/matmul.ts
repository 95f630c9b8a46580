import { quantFormats, rowBytes } from '../../quant/index.ts';
import { activationRounding, roundRow } from '../activation-rounding.ts';
import type { Arena, GatherRowsOp, MatmulOp, WeightMatrix } from '../contract.ts';

export function dequantizeRow(arena: Arena, matrix: WeightMatrix, row: number, out: Float32Array): void {
  const format = quantFormats[matrix.type];
  const sizeBytes = rowBytes(matrix.type, matrix.numCols);
  const bytes = arena.u8(matrix.offset + row * sizeBytes, sizeBytes);
  format.dequantize(bytes, 0, out, 0, matrix.numCols / format.blockSize);
}

export function gatherRows(arena: Arena, { table, ids, out, numRows, scale }: GatherRowsOp): void {
  const dim = table.numCols;
  const rowIds = arena.i32(ids, numRows);
  for (let i = 0; i < numRows; i++) {
    const row = arena.f32(out + i * dim * 4, dim);
    dequantizeRow(arena, table, rowIds[i]!, row);
    for (let j = 0; j < dim; j++) row[j]! *= scale;
  }
}

type Row = Float32Array;

export function matmul(arena: Arena, { x, numTokens, outputs }: Omit<MatmulOp, 'norm'>): void {
  for (const { weight, out, bias, accumulate } of outputs) {
    const { numRows, numCols } = weight;
    const rows: Float32Array[] = [];
    for (let t = 0; t < numTokens; t++) {
      rows.push(roundRow(arena.f32(x + t * numCols * 4, numCols), activationRounding[weight.type]));
    }
    const target = arena.f32(out, numTokens * numRows);
    const biases = bias === null ? null : arena.f32(bias, numRows);
    // Four sums at once, each in its own order: a processor waits for the previous addition of a single one.
    const weights = [0, 1, 2, 3].map(() => new Float32Array(numCols)) as [Row, Row, Row, Row];
    const [weights0, weights1, weights2, weights3] = weights;
    const sums = new Float64Array(4);
    for (let first = 0; first < numRows; first += 4) {
      const count = Math.min(4, numRows - first);
      for (let r = 0; r < count; r++) dequantizeRow(arena, weight, first + r, weights[r]!);
      for (let t = 0; t < numTokens; t++) {
        const row = rows[t]!;
        let [sum0, sum1, sum2, sum3] = [0, 0, 0, 0];
        for (let i = 0; i < numCols; i++) {
          const value = row[i]!;
          sum0 += weights0[i]! * value;
          sum1 += weights1[i]! * value;
          sum2 += weights2[i]! * value;
          sum3 += weights3[i]! * value;
        }
        sums[0] = sum0;
        sums[1] = sum1;
        sums[2] = sum2;
        sums[3] = sum3;
        for (let r = 0; r < count; r++) {
          const sum = biases === null ? sums[r]! : sums[r]! + biases[first + r]!;
          const index = t * numRows + first + r;
          target[index] = accumulate ? target[index]! + sum : sum;
        }
      }
    }
  }
}
