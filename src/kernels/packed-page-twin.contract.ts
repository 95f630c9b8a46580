import { floatToHalf, halfToFloat } from '../core/half.ts';
import { kvHeadBytes, type PackedKvPrecision, PAGE_TOKENS } from './contract.ts';

/** Non-negative halves, ascending. */
const HALVES = Float64Array.from({ length: 0x7c00 }, (_, bits) => halfToFloat(bits));

/** Bits of the smallest half that is not below a non-negative number; -1 if there is none. */
function ceilHalf(value: number): number {
  if (!(value <= HALVES.at(-1)!)) return -1;
  let [low, high] = [0, HALVES.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (HALVES[middle]! >= value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Packs one head slowly, as the contract defines it: k[headDim][16], v[16][headDim]. */
export function packHead(precision: PackedKvPrecision, headDim: number, k: Float32Array, v: Float32Array): Uint8Array {
  const bytes = new Uint8Array(kvHeadBytes(headDim, precision));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [values, numRows, length] of [
    [k, headDim, PAGE_TOKENS],
    [v, PAGE_TOKENS, headDim],
  ] as const) {
    const rows = Array.from({ length: numRows }, (_, r) =>
      packRow(precision, values.subarray(r * length, (r + 1) * length)),
    );
    for (const { scale } of rows) at = put16(view, at, scale);
    if (precision === 'q4') for (const { min } of rows) at = put16(view, at, min);
    for (const { q } of rows) {
      const half = length / 2;
      if (precision === 'q8') q.forEach((number) => view.setInt8(at++, number));
      else for (let i = 0; i < half; i++) view.setUint8(at++, q[i]! + 16 * q[i + half]!);
    }
  }
  return bytes;
}

function put16(view: DataView, at: number, bits: number): number {
  view.setUint16(at, bits, true);
  return at + 2;
}

function packRow(precision: PackedKvPrecision, x: Float32Array): { scale: number; min: number; q: number[] } {
  const bottom = Math.min(...x);
  const min = precision === 'q8' ? 0 : floorHalf(bottom);
  const top = precision === 'q8' ? Math.max(...x.map(Math.abs)) : Math.fround(Math.max(...x) - min);
  const scale = ceilHalf(Math.fround(top / (precision === 'q8' ? 127 : 15)));
  if (scale < 0 || !Number.isFinite(min)) {
    return { scale: 0x7e00, min: Number.isFinite(min) ? floatToHalf(min + 0) : 0, q: Array.from(x, () => 0) };
  }
  const step = HALVES[scale]!;
  const q = Array.from(x, (value) => {
    if (step === 0) return 0;
    const exact = Math.fround(Math.fround(value - min) / step);
    const even = 2 * Math.round(exact / 2);
    return Math.abs(exact - even) === 0.5 ? even : Math.round(exact);
  });
  return { scale, min: floatToHalf(min + 0), q };
}

/** The largest half that is not above a number; NaN or -Infinity if there is none. */
function floorHalf(value: number): number {
  if (Number.isNaN(value)) return NaN;
  if (value < 0) return -(HALVES[ceilHalf(-value)] ?? Infinity);
  const above = ceilHalf(value);
  if (above < 0) return HALVES.at(-1)!;
  return HALVES[above]! > value ? HALVES[above - 1]! : HALVES[above]!;
}

/** Decodes the bytes of a head. */
export function unpackHead(
  precision: PackedKvPrecision,
  headDim: number,
  bytes: Uint8Array,
): { k: Float32Array; v: Float32Array } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const half = (at: number): number => halfToFloat(view.getUint16(at, true));
  let start = 0;
  const part = (numRows: number, length: number): Float32Array => {
    const numbersAt = start + numRows * (precision === 'q8' ? 2 : 4);
    const rowBytes = precision === 'q8' ? length : length / 2;
    const values = new Float32Array(numRows * length);
    for (let r = 0; r < numRows; r++) {
      const scale = half(start + 2 * r);
      for (let i = 0; i < length; i++) {
        const at = numbersAt + r * rowBytes + (precision === 'q8' ? i : i % rowBytes);
        if (precision === 'q8') values[r * length + i] = view.getInt8(at) * scale;
        else {
          const q = i < rowBytes ? view.getUint8(at) % 16 : Math.floor(view.getUint8(at) / 16);
          values[r * length + i] = q * scale + half(start + 2 * (numRows + r));
        }
      }
    }
    start = numbersAt + numRows * rowBytes;
    return values;
  };
  return { k: part(headDim, PAGE_TOKENS), v: part(PAGE_TOKENS, headDim) };
}
