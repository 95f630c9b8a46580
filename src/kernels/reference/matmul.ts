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

export function matmul(arena: Arena, { x, numTokens, outputs }: Omit<MatmulOp, 'norm'>): void {
  for (const { weight, out, bias, accumulate } of outputs) {
    const { numRows, numCols } = weight;
    const rows: Float32Array[] = [];
    for (let t = 0; t < numTokens; t++) {
      rows.push(roundRow(arena.f32(x + t * numCols * 4, numCols), activationRounding[weight.type]));
    }
    const target = arena.f32(out, numTokens * numRows);
    const biases = bias === null ? null : arena.f32(bias, numRows);
    const weights = new Float32Array(numCols);
    for (let r = 0; r < numRows; r++) {
      dequantizeRow(arena, weight, r, weights);
      for (let t = 0; t < numTokens; t++) {
        const row = rows[t]!;
        let sum = 0;
        for (let i = 0; i < numCols; i++) sum += weights[i]! * row[i]!;
        if (biases !== null) sum += biases[r]!;
        const index = t * numRows + r;
        target[index] = accumulate ? target[index]! + sum : sum;
      }
    }
  }
}
