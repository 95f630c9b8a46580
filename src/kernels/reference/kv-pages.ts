import { floatToHalf, halfFloats, halfToFloat } from '../../core/half.ts';
import { roundToEven } from '../../core/rounding.ts';
import { type Arena, type KvPrecision, type KvRegion, type PackPagesOp, PAGE_TOKENS } from '../contract.ts';
import { checkRegions, kvHeadBytes } from '../kv-region.ts';

/** K and V of one layer of one page, in the layout of writable pages. */
export interface Page {
  readonly k: Float32Array;
  readonly v: Float32Array;
}

/** The raw numbers of a page in memory. */
export function storedPage(
  arena: Arena,
  kv: KvRegion,
  layer: number,
  pageId: number,
): { k: Uint16Array | Float32Array; v: Uint16Array | Float32Array } {
  const base = kv.base + pageId * kv.pageBytes + layer * kv.layerBytes;
  const count = kv.numKvHeads * kv.headDim * PAGE_TOKENS;
  if (kv.precision === 'f32') return { k: arena.f32(base, count), v: arena.f32(base + count * 4, count) };
  return { k: arena.u16(base, count), v: arena.u16(base + count * 2, count) };
}

function decodeHalves(halves: Uint16Array): Float32Array {
  const table = halfFloats();
  const values = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) values[i] = table[halves[i]!]!;
  return values;
}

/** The decoded values of a page; `KvRegion` describes the layout. */
export function readPage(arena: Arena, kv: KvRegion, layer: number, pageId: number): Page {
  const unpack = unpackRow[kv.precision];
  if (unpack === null) {
    const { k, v } = storedPage(arena, kv, layer, pageId);
    if (k instanceof Float32Array) return { k, v: v as Float32Array };
    return { k: decodeHalves(k), v: decodeHalves(v as Uint16Array) };
  }
  const count = kv.numKvHeads * kv.headDim * PAGE_TOKENS;
  const page = { k: new Float32Array(count), v: new Float32Array(count) };
  forEachRow(arena, kv, layer, pageId, (row, part, at) => page[part].set(unpack(row), at));
  return page;
}

/** A row of a packed page: the values that share a scale. */
interface PackedRow {
  readonly numbers: Uint8Array;
  readonly length: number;
  /** f16[1]; `min` is empty in q8. */
  readonly scale: Uint16Array;
  readonly min: Uint16Array;
}

/** Visits the channels of the keys and the tokens of the values; `at` gives their places in a full-precision page. */
function forEachRow(
  arena: Arena,
  { base, pageBytes, layerBytes, numKvHeads, headDim, precision }: KvRegion,
  layer: number,
  pageId: number,
  visit: (row: PackedRow, part: 'k' | 'v', at: number) => void,
): void {
  const numMins = precision === 'q4' ? 1 : 0;
  for (let head = 0; head < numKvHeads; head++) {
    let start = base + pageId * pageBytes + layer * layerBytes + head * kvHeadBytes(headDim, precision);
    for (const [part, numRows, length] of [
      ['k', headDim, PAGE_TOKENS],
      ['v', PAGE_TOKENS, headDim],
    ] as const) {
      const bytes = precision === 'q4' ? length / 2 : length;
      const numbersAt = start + numRows * 2 * (1 + numMins);
      for (let r = 0; r < numRows; r++) {
        const scale = arena.u16(start + r * 2, 1);
        const min = arena.u16(start + (numRows + r) * 2, numMins);
        const numbers = arena.u8(numbersAt + r * bytes, bytes);
        visit({ numbers, length, scale, min }, part, head * headDim * PAGE_TOKENS + r * length);
      }
      start = numbersAt + numRows * bytes;
    }
  }
}

const { fround } = Math;

const unpackRow: Readonly<Record<KvPrecision, ((row: PackedRow) => Float32Array) | null>> = {
  f16: null,
  f32: null,
  q8: ({ numbers, scale }) =>
    Float32Array.from(numbers, (byte) => fround(((byte << 24) >> 24) * halfToFloat(scale[0]!))),
  q4: ({ numbers, length, scale, min }) => {
    const half = length / 2;
    return Float32Array.from({ length }, (_, i) => {
      const q = i < half ? numbers[i]! & 15 : numbers[i - half]! >> 4;
      return fround(fround(q * halfToFloat(scale[0]!)) + halfToFloat(min[0]!));
    });
  },
};

const packRow: Readonly<Record<KvPrecision, (x: Float32Array, row: PackedRow) => void>> = {
  f16: () => {},
  f32: () => {},
  q8: (x, { numbers, scale }) => {
    const peak = x.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    const step = storeScale(fround(peak / 127), scale);
    x.forEach((value, i) => (numbers[i] = step === 0 ? 0 : roundToEven(fround(value / step))));
  },
  q4: (x, { numbers, length, scale, min }) => {
    const bits = halfBelow(x.reduce((a, b) => Math.min(a, b)));
    const least = halfToFloat(bits);
    const step = storeScale(fround(fround(x.reduce((a, b) => Math.max(a, b)) - least) / 15), scale);
    min[0] = Number.isFinite(least) ? bits : 0;
    const q = (i: number): number => (step === 0 ? 0 : roundToEven(fround(fround(x[i]! - least) / step)));
    numbers.forEach((_, i) => (numbers[i] = q(i) | (q(i + length / 2) << 4)));
  },
};

const HALF_NAN = 0x7e00;

/** Rounds up, so that the largest value needs no clamping; returns 0 if there is nothing to divide by. */
function storeScale(value: number, scale: Uint16Array): number {
  let bits = floatToHalf(value);
  if (halfToFloat(bits) < value) bits++;
  scale[0] = bits >= 0x7c00 ? HALF_NAN : bits;
  return bits >= 0x7c00 ? 0 : halfToFloat(bits);
}

/** The largest half that is not above `value`; zero is unsigned. */
function halfBelow(value: number): number {
  if (value === 0) return 0;
  const bits = floatToHalf(value);
  if (!(halfToFloat(bits) > value)) return bits;
  return bits >= 0x8000 ? bits + 1 : bits - 1;
}

export function packPages(arena: Arena, op: PackPagesOp): void {
  const { from, to, firstLayer, numLayers, numPages } = op;
  checkRegions('packPages', from, to);
  const pages = arena.i32(op.pages, numPages * 2);
  for (let i = 0; i < numPages; i++) {
    for (let layer = firstLayer; layer < firstLayer + numLayers; layer++) {
      const page = readPage(arena, from, layer, pages[2 * i]!);
      forEachRow(arena, to, layer, pages[2 * i + 1]!, (row, part, at) =>
        packRow[to.precision](page[part].subarray(at, at + row.length), row),
      );
    }
  }
}
