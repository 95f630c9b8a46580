import { type Arena, TOP_STATS, type TopLogitsOp } from '../contract.ts';
import { checkTopLogits } from '../op-limits.ts';

export function topLogits(arena: Arena, op: TopLogitsOp): void {
  checkTopLogits(op);
  const { logits, numRows, vocabSize, k, values, ids, stats } = op;
  for (let row = 0; row < numRows; row++) {
    const x = arena.f32(logits + row * vocabSize * 4, vocabSize);
    const order = Int32Array.from(x, (_, id) => id).sort((a, b) => x[b]! - x[a]! || a - b);
    const best = order.subarray(0, k);
    arena.i32(ids + row * k * 4, k).set(best);
    arena.f32(values + row * k * 4, k).set(Array.from(best, (id) => x[id]!));
    const max = x[order[0]!]!;
    const sum = x.reduce((total, value) => total + (value === -Infinity ? 0 : Math.exp(value - max)), 0);
    const numBad = x.reduce((count, value) => (value < Infinity ? count : count + 1), 0);
    arena.f32(stats + row * TOP_STATS * 4, TOP_STATS).set([max, sum, numBad]);
  }
}
