/** Fills `out` with the values of a tensor from position `start`, in the order of its file. */
export type ValueReader = (start: number, out: Float32Array) => void;

/** Every value changed by `map`, which also gets the value's position. */
export const mapValues =
  (read: ValueReader, map: (value: number, position: number) => number): ValueReader =>
  (start, out) => {
    read(start, out);
    for (let i = 0; i < out.length; i++) out[i] = map(out[i]!, start + i);
  };

/** Row r is row `sourceOf(r)` of the source; neighbours are read at once. Only whole rows can be read. */
export const pickRows =
  (read: ValueReader, numCols: number, sourceOf: (row: number) => number): ValueReader =>
  (start, out) => {
    const first = start / numCols;
    const count = out.length / numCols;
    for (let row = 0, run = 1; row < count; row += run) {
      const from = sourceOf(first + row);
      run = 1;
      while (row + run < count && sourceOf(first + row + run) === from + run) run++;
      read(from * numCols, out.subarray(row * numCols, (row + run) * numCols));
    }
  };

/** Column c is column `sourceOf(c)` of the source. Only whole rows can be read. */
export const pickColumns = (read: ValueReader, numCols: number, sourceOf: (col: number) => number): ValueReader => {
  const sources = Int32Array.from({ length: numCols }, (_, col) => sourceOf(col));
  return (start, out) => {
    read(start, out);
    for (let at = 0; at < out.length; at += numCols) {
      const row = out.slice(at, at + numCols);
      for (let col = 0; col < numCols; col++) out[at + col] = row[sources[col]!]!;
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

/** `count` matrices of numRows x numCols, each transposed. One is in memory at a time, until its last value is read. */
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
