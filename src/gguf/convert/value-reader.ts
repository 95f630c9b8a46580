/** Fills `out` with the values of a tensor from position `start`, in the order of its file. */
export type ValueReader = (start: number, out: Float32Array) => void;

/** Every value changed by `map`, which also gets the value's position. */
export const mapValues =
  (read: ValueReader, map: (value: number, position: number) => number): ValueReader =>
  (start, out) => {
    read(start, out);
    for (let i = 0; i < out.length; i++) out[i] = map(out[i]!, start + i);
  };

/** Rows that are read and not used, for each one that is. */
const MAX_SPARE_ROWS = 3;

/** Row r is row `sourceOf(r)` of the source. Only whole rows can be read. */
export const pickRows =
  (read: ValueReader, numCols: number, sourceOf: (row: number) => number): ValueReader =>
  (start, out) => {
    const first = start / numCols;
    const count = out.length / numCols;
    const sources = Float64Array.from({ length: count }, (_, row) => sourceOf(first + row));
    const low = sources.reduce((min, source) => Math.min(min, source), Infinity);
    const numSpanned = sources.reduce((max, source) => Math.max(max, source), 0) - low + 1;
    if (numSpanned > count * (1 + MAX_SPARE_ROWS)) {
      for (const [row, source] of sources.entries())
        read(source * numCols, out.subarray(row * numCols, (row + 1) * numCols));
      return;
    }
    // One read instead of one for each row: millions in a model with alternating rows.
    const spanned = new Float32Array(numSpanned * numCols);
    read(low * numCols, spanned);
    for (const [row, source] of sources.entries()) {
      const at = (source - low) * numCols;
      out.set(spanned.subarray(at, at + numCols), row * numCols);
    }
  };

/** `count` of the source's `numCols` columns: column c is its column `sourceOf(c)`. Only whole rows can be read. */
export const pickColumns = (
  read: ValueReader,
  { numCols, count, sourceOf }: { numCols: number; count: number; sourceOf: (col: number) => number },
): ValueReader => {
  const sources = Int32Array.from({ length: count }, (_, col) => sourceOf(col));
  return (start, out) => {
    const row = new Float32Array(numCols);
    for (let at = 0; at < out.length; at += count) {
      read(((start + at) / count) * numCols, row);
      for (let col = 0; col < count; col++) out[at + col] = row[sources[col]!]!;
    }
  };
};

/** Tensors of `size` values one after the other. */
export const joinTensors =
  (readers: readonly ValueReader[], size: number): ValueReader =>
  (start, out) => {
    for (let at = 0; at < out.length;) {
      const index = Math.floor((start + at) / size);
      const offset = start + at - index * size;
      const count = Math.min(out.length - at, size - offset);
      readers[index]!(offset, out.subarray(at, at + count));
      at += count;
    }
  };

/** A tensor of `length` values, then zeros. */
export const padWithZeros =
  (read: ValueReader, length: number): ValueReader =>
  (start, out) => {
    const count = Math.min(out.length, Math.max(0, length - start));
    if (count > 0) read(start, out.subarray(0, count));
    out.fill(0, count);
  };

/** `count` matrices of numRows x numCols, each transposed. One is in memory at a time, until the last value of all is read. */
export function transposeMatrices(
  read: ValueReader,
  { count, numRows, numCols }: { count: number; numRows: number; numCols: number },
): ValueReader {
  const size = numRows * numCols;
  let loaded: { index: number; values: Float32Array } | null = null;
  return (start, out) => {
    for (let i = 0; i < out.length; i++) {
      const index = Math.floor((start + i) / size);
      if (loaded?.index !== index) {
        loaded = { index, values: loaded?.values ?? new Float32Array(size) };
        read(index * size, loaded.values);
      }
      const at = start + i - index * size;
      out[i] = loaded.values[(at % numRows) * numCols + Math.floor(at / numRows)]!;
    }
    // All tensors of a model have a reader: their buffers would add up to its size.
    if (start + out.length === count * size) loaded = null;
  };
}
