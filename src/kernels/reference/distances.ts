import { roundToEven } from '../../core/rounding.ts';
import type { Arena, DistancesOp, VectorTable } from '../contract.ts';
import { checkDistances } from '../op-limits.ts';

export function distances(arena: Arena, op: DistancesOp): void {
  checkDistances(op);
  const { numVectors, dim, metric } = op;
  const ids = op.ids === null ? null : arena.i32(op.ids, numVectors);
  const out = arena.f32(op.out, numVectors);
  const raw = arena.f32(op.query, dim);
  const query = op.format === 'f32' ? raw : roundQuery(raw);
  for (let i = 0; i < numVectors; i++) {
    out[i] = distance(metric, query, readVector(arena, op, ids === null ? i : ids[i]!));
  }
}

export function distance(metric: DistancesOp['metric'], a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let d = 0; d < a.length; d++) {
    const [x, y] = [a[d]!, b[d]!];
    sum += metric === 'dot' ? x * y : (x - y) ** 2;
  }
  return Math.fround(sum);
}

export function readVector(arena: Arena, table: VectorTable, id: number): ArrayLike<number> {
  const { vectors, dim, format, scales } = table;
  if (format === 'f32') return arena.f32(vectors + id * dim * 4, dim);
  const scale = arena.f32(scales! + id * 4, 1)[0]!;
  return Float64Array.from(arena.u8(vectors + id * dim, dim), (byte) => ((byte << 24) >> 24) * scale);
}

/** The query as rounded for int8 vectors. */
export function roundQuery(x: Float32Array): Float64Array {
  const scale = Math.fround(x.reduce((max, value) => Math.max(max, Math.abs(value)), 0) / 127);
  return Float64Array.from(x, (value) => {
    if (scale === 0) return 0;
    if (!Number.isFinite(scale)) return NaN;
    return Math.max(-127, Math.min(127, roundToEven(Math.fround(value / scale)))) * scale;
  });
}
