import { floatToHalf } from '../../core/half.ts';
import { type Arena, type AttentionOp, PAGE_TOKENS, type WriteKvOp } from '../contract.ts';
import { checkRegions } from '../kv-region.ts';
import { checkWindow } from '../op-limits.ts';
import { type Page, readPage, storedPage } from './kv-pages.ts';

export function writeKv(arena: Arena, { kv, layer, k, v, slots, numTokens }: WriteKvOp): void {
  checkRegions('writeKv', kv, null);
  const { numKvHeads, headDim } = kv;
  const store = kv.precision === 'f16' ? floatToHalf : (value: number): number => value;
  const slotIds = arena.i32(slots, numTokens);
  const keys = arena.f32(k, numTokens * numKvHeads * headDim);
  const values = arena.f32(v, numTokens * numKvHeads * headDim);
  for (let t = 0; t < numTokens; t++) {
    const page = storedPage(arena, kv, layer, Math.floor(slotIds[t]! / PAGE_TOKENS));
    const slot = slotIds[t]! % PAGE_TOKENS;
    for (let head = 0; head < numKvHeads; head++) {
      for (let d = 0; d < headDim; d++) {
        const from = (t * numKvHeads + head) * headDim + d;
        page.k[(head * headDim + d) * PAGE_TOKENS + slot] = store(keys[from]!);
        page.v[(head * PAGE_TOKENS + slot) * headDim + d] = store(values[from]!);
      }
    }
  }
}

export function attention(arena: Arena, op: AttentionOp): void {
  const { kv, packed = null } = op;
  checkRegions('attention', kv, packed);
  checkWindow(op);
  const sequences = arena.i32(op.sequences, op.numSequences * 4);
  const rowWidth = op.numHeads * op.kv.headDim;
  for (let s = 0; s < op.numSequences; s++) {
    const [firstRow, numRows, contextTokens, tableIndex] = sequences.subarray(s * 4, s * 4 + 4) as unknown as Quad;
    const pageIds = arena.i32(op.pageTables + tableIndex * 4, Math.ceil(contextTokens / PAGE_TOKENS));
    const pages = Array.from(pageIds, (pageId) =>
      pageId < 0 ? readPage(arena, packed!, op.layer, ~pageId) : readPage(arena, kv, op.layer, pageId),
    );
    for (let i = 0; i < numRows; i++) {
      const last = op.seesAll === true ? contextTokens - 1 : contextTokens - numRows + i;
      const first = op.window > 0 ? Math.max(0, last - op.window + 1) : 0;
      const byteOffset = (firstRow + i) * rowWidth * 4;
      attendRow(
        op,
        op.sinks ? arena.f32(op.sinks, op.numHeads) : null,
        pages,
        arena.f32(op.q + byteOffset, rowWidth),
        arena.f32(op.out + byteOffset, rowWidth),
        first,
        last,
      );
    }
  }
}

type Quad = [number, number, number, number];

/** Attends from one query row to context tokens first … last. */
function attendRow(
  { kv, numHeads, scale, softcap }: AttentionOp,
  sinks: Float32Array | null,
  pages: readonly Page[],
  q: Float32Array,
  out: Float32Array,
  first: number,
  last: number,
): void {
  const { headDim, numKvHeads } = kv;
  const scores = new Float64Array(last + 1);
  for (let head = 0; head < numHeads; head++) {
    const kvHead = Math.floor(head / (numHeads / numKvHeads));
    let max = sinks?.[head] ?? -Infinity;
    for (let t = first; t <= last; t++) {
      const { k } = pages[Math.floor(t / PAGE_TOKENS)]!;
      const at = kvHead * headDim * PAGE_TOKENS + (t % PAGE_TOKENS);
      let dot = 0;
      for (let d = 0; d < headDim; d++) dot += q[head * headDim + d]! * k[at + d * PAGE_TOKENS]!;
      const score = dot * scale;
      scores[t] = softcap > 0 ? softcap * Math.tanh(score / softcap) : score;
      max = Math.max(max, scores[t]!);
    }
    const sums = new Float64Array(headDim);
    let total = sinks === null ? 0 : Math.exp(sinks[head]! - max);
    for (let t = first; t <= last; t++) {
      const { v } = pages[Math.floor(t / PAGE_TOKENS)]!;
      const at = (kvHead * PAGE_TOKENS + (t % PAGE_TOKENS)) * headDim;
      const weight = Math.exp(scores[t]! - max);
      total += weight;
      for (let d = 0; d < headDim; d++) sums[d]! += weight * v[at + d]!;
    }
    for (let d = 0; d < headDim; d++) out[head * headDim + d] = sums[d]! / total;
  }
}
