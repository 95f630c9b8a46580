import { COARSE_BYTES, createSignSearch, FINE_BYTES, NUM_SIGNS, ROW_MULTIPLE } from '../../kernels/wasm/sign-search.ts';

/** Views of the table's memory; growing detaches them. */
export interface SignColumns {
  /** f32[a power of two]: the vector whose signs are taken next; the kernel overwrites it. */
  readonly values: Float32Array;
  /** i16[rowLength] */
  readonly query: Int16Array;
  /** i8[capacity × rowLength]; values beyond the dimension are 0. */
  readonly codes: Int8Array;
  readonly rowLength: number;
  /** f32[capacity] */
  readonly scales: Float32Array;
  /** i32[capacity] and f32[capacity]: the rows of a search and their scores. */
  readonly slots: Int32Array;
  readonly scores: Float32Array;
}

/** Rows of signs and 8-bit values in WASM memory, compared by SIMD kernels. */
export interface SignTable {
  readonly capacity: number;
  readonly columns: SignColumns;
  /** Doubles the capacity. */
  grow(): void;
  /** Stores the signs of `values` as those of a row. */
  setSigns(slot: number): void;
  copyRow(from: number, to: number): void;
  /** Writes the rows whose signs are nearest to those of `values` to `slots`; returns their number. */
  findNear(counts: { readonly numRows: number; readonly numCoarse: number; readonly numRanked: number }): number;
  /** Scores the first `count` of `slots`: the dot product of `query` and the row, times its scale. */
  rank(count: number): void;
}

const PAGE_BYTES = 65_536;
const NUM_WORDS = NUM_SIGNS / 32;

interface Column {
  readonly bytes: number;
  /** Whether `bytes` is for each row. */
  readonly isPerRow?: boolean;
}

export function createSignTable(dim: number, initialCapacity: number): SignTable {
  const memory = new WebAssembly.Memory({ initial: 0 });
  const kernel = createSignSearch(memory);
  const rowLength = Math.ceil(dim / ROW_MULTIPLE) * ROW_MULTIPLE;
  const transformLength = 2 ** Math.ceil(Math.log2(Math.max(dim, NUM_SIGNS)));
  const sizes = {
    values: { bytes: 4 * transformLength },
    query: { bytes: 2 * rowLength },
    signs: { bytes: 4 * NUM_WORDS },
    histogram: { bytes: 4 * (NUM_SIGNS + ROW_MULTIPLE) },
    coarse: { bytes: COARSE_BYTES, isPerRow: true },
    fine: { bytes: FINE_BYTES, isPerRow: true },
    codes: { bytes: rowLength, isPerRow: true },
    scales: { bytes: 4, isPerRow: true },
    slots: { bytes: 4, isPerRow: true },
    scores: { bytes: 4, isPerRow: true },
    distances: { bytes: 2, isPerRow: true },
  } satisfies Record<string, Column>;
  type Name = keyof typeof sizes;
  const names = Object.keys(sizes) as Name[];
  const offsets = {} as Record<Name, number>;
  let capacity = 0;
  let columns!: SignColumns;

  function setCapacity(next: number): void {
    const before = { ...offsets };
    let end = 0;
    for (const name of names) {
      const { bytes, isPerRow = false }: Column = sizes[name];
      offsets[name] = end;
      end += isPerRow ? bytes * next : bytes;
    }
    memory.grow(Math.ceil((end - memory.buffer.byteLength) / PAGE_BYTES));
    const all = new Uint8Array(memory.buffer);
    // The last column first: each moves to a higher place, where the next one was.
    if (capacity > 0) {
      for (const name of names.toReversed()) {
        const { bytes, isPerRow = false }: Column = sizes[name];
        if (isPerRow) all.copyWithin(offsets[name], before[name], before[name] + bytes * capacity);
      }
    }
    capacity = next;
    const { buffer } = memory;
    columns = {
      values: new Float32Array(buffer, offsets.values, transformLength),
      query: new Int16Array(buffer, offsets.query, rowLength),
      codes: new Int8Array(buffer, offsets.codes, capacity * rowLength),
      rowLength,
      scales: new Float32Array(buffer, offsets.scales, capacity),
      slots: new Int32Array(buffer, offsets.slots, capacity),
      scores: new Float32Array(buffer, offsets.scores, capacity),
    };
  }
  setCapacity(initialCapacity);

  const takeSigns = (): void => kernel.takeSigns(offsets.values, transformLength, offsets.signs, NUM_WORDS);
  const copy = (to: number, from: number, bytes: number): void =>
    void new Uint8Array(memory.buffer).copyWithin(to, from, from + bytes);

  return {
    get capacity() {
      return capacity;
    },
    get columns() {
      return columns;
    },
    grow: () => setCapacity(2 * capacity),
    setSigns(slot) {
      takeSigns();
      copy(offsets.coarse + slot * COARSE_BYTES, offsets.signs, COARSE_BYTES);
      copy(offsets.fine + slot * FINE_BYTES, offsets.signs + COARSE_BYTES, FINE_BYTES);
    },
    copyRow(from, to) {
      for (const name of ['coarse', 'fine', 'codes', 'scales'] as const) {
        const { bytes } = sizes[name];
        copy(offsets[name] + to * bytes, offsets[name] + from * bytes, bytes);
      }
    },
    findNear({ numRows, numCoarse, numRanked }) {
      takeSigns();
      const { coarse, fine, signs, distances, histogram, slots } = offsets;
      return kernel.findNear(coarse, fine, numRows, signs, numCoarse, numRanked, distances, histogram, slots);
    },
    rank(count) {
      const { query, codes, scales, slots, scores } = offsets;
      kernel.rankRows(query, codes, scales, rowLength, slots, count, scores);
    },
  };
}
