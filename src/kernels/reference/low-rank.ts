import type { Arena, LowRankDeltaOp } from '../contract.ts';
import { checkLowRank } from '../op-limits.ts';

export function lowRankDelta(arena: Arena, op: LowRankDeltaOp): void {
  checkLowRank(op);
  const { numTokens, numCols, numRows, rank, scale } = op;
  const [a, b] = [arena.f32(op.a, rank * numCols), arena.f32(op.b, numRows * rank)];
  const rows = op.rows === null ? null : arena.i32(op.rows, numTokens);
  for (let i = 0; i < numTokens; i++) {
    const token = rows === null ? i : rows[i]!;
    const x = arena.f32(op.x + token * numCols * 4, numCols);
    const out = arena.f32(op.out + token * numRows * 4, numRows);
    const inner = arena.f32(op.scratch + i * rank * 4, rank);
    for (let r = 0; r < rank; r++) {
      let sum = 0;
      for (let c = 0; c < numCols; c++) sum += a[r * numCols + c]! * x[c]!;
      inner[r] = sum;
    }
    for (let n = 0; n < numRows; n++) {
      let sum = 0;
      for (let r = 0; r < rank; r++) sum += b[n * rank + r]! * inner[r]!;
      out[n]! += scale * sum;
    }
  }
}
