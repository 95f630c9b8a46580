import { invalidImage } from '../image-error.ts';

/** The bytes of rows whose first byte names the filter they were written with. `pixelBytes`: distance to the pixel on the left. */
export function unfilter(raw: Uint8Array, rowBytes: number, pixelBytes: number): Uint8Array {
  const numRows = raw.length / (1 + rowBytes);
  const out = new Uint8Array(numRows * rowBytes);
  for (let row = 0; row < numRows; row++) {
    const filter = raw[row * (1 + rowBytes)]!;
    const from = row * (1 + rowBytes) + 1;
    const to = row * rowBytes;
    if (filter > 4) throw invalidImage(`row ${row} of the PNG has filter ${filter}`);
    for (let i = 0; i < rowBytes; i++) {
      const left = i >= pixelBytes ? out[to + i - pixelBytes]! : 0;
      const above = row > 0 ? out[to + i - rowBytes]! : 0;
      const corner = row > 0 && i >= pixelBytes ? out[to + i - rowBytes - pixelBytes]! : 0;
      out[to + i] = raw[from + i]! + predict(filter, left, above, corner);
    }
  }
  return out;
}

function predict(filter: number, left: number, above: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  const estimate = left + above - corner;
  const [toLeft, toAbove, toCorner] = [estimate - left, estimate - above, estimate - corner].map(Math.abs);
  if (toLeft! <= toAbove! && toLeft! <= toCorner!) return left;
  return toAbove! <= toCorner! ? above : corner;
}
