import type { Floats, NetworkLayout } from './layout.ts';

/** Share of entries of one W that survive. */
export const DENSITY = 0.1;

/** Positions of the largest entries by magnitude of a matrix at `at`, ascending; of equal ones the earlier. */
export function largestEntries(params: Floats, at: number, size: number, density = DENSITY): Int32Array {
  const count = Math.max(1, Math.round(size * density));
  const order = Int32Array.from({ length: size }, (_, i) => i);
  order.sort((a, b) => Math.abs(params[at + b]!) - Math.abs(params[at + a]!) || a - b);
  return order.slice(0, count).sort();
}

/** Entries of both W that may be nonzero. */
export interface Mask {
  readonly wz: Int32Array;
  readonly wh: Int32Array;
}

/** Hard thresholding: zeroes all but the largest tenth of both W and returns the mask. */
export function threshold(params: Floats, layout: NetworkLayout): Mask {
  const size = layout.numHidden * layout.numInputs;
  const keep = (at: number): Int32Array => {
    const entries = largestEntries(params, at, size);
    const values = entries.length === size ? null : Float64Array.from(entries, (i) => params[at + i]!);
    if (values !== null) {
      params.fill(0, at, at + size);
      entries.forEach((i, j) => (params[at + i] = values[j]!));
    }
    return entries;
  };
  return { wz: keep(layout.wz), wh: keep(layout.wh) };
}

/** Entries outside the mask have no gradient: sparse stays sparse. */
export function maskGradient(gradient: Floats, layout: NetworkLayout, mask: Mask): void {
  const size = layout.numHidden * layout.numInputs;
  for (const [at, entries] of [
    [layout.wz, mask.wz],
    [layout.wh, mask.wh],
  ] as const) {
    const values = Float64Array.from(entries, (i) => gradient[at + i]!);
    gradient.fill(0, at, at + size);
    entries.forEach((i, j) => (gradient[at + i] = values[j]!));
  }
}

/** Share of zeros in both W. */
export function sparsityOf(params: Floats, layout: NetworkLayout): number {
  const size = layout.numHidden * layout.numInputs;
  let zeros = 0;
  for (const at of [layout.wz, layout.wh]) for (let i = 0; i < size; i++) zeros += +(params[at + i] === 0);
  return zeros / (2 * size);
}
