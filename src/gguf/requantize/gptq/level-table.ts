import type { QuantFormat } from '../../../quant/index.ts';

/** The values that a block can store with its present scales: `numLevels` entries for each group, as its decoder reads them. */
export interface LevelTable {
  readonly values: Float32Array;
  /** Decodes the levels of the block at `at`, which are overwritten. */
  read(bytes: Uint8Array, at: number): void;
  /** The level whose value in the group of entry `index` is nearest. */
  nearest(index: number, value: number): number;
  valueOf(index: number, level: number): number;
}

/** A table for the blocks of a format with a level coding. */
export function createLevelTable(format: QuantFormat): LevelTable {
  const { blockSize, dequantize } = format;
  const { numLevels, groupSize, write } = format.levelCoding!;
  const numGroups = blockSize / groupSize;
  const values = new Float32Array(numGroups * numLevels);
  const levels = new Uint8Array(blockSize);
  const decoded = new Float32Array(blockSize);
  const tableAt = (index: number): number => Math.floor(index / groupSize) * numLevels;
  return {
    values,
    // Each value of a group shows another level, so that few decodings show all.
    read(bytes, at) {
      for (let first = 0; first < numLevels; first += groupSize) {
        for (let i = 0; i < blockSize; i++) levels[i] = Math.min(first + (i % groupSize), numLevels - 1);
        write(levels, bytes, at);
        dequantize(bytes, at, decoded, 0, 1);
        for (let i = 0; i < blockSize; i++) values[tableAt(i) + levels[i]!] = decoded[i]!;
      }
    },
    nearest(index, value) {
      const start = tableAt(index);
      const isFalling = values[start]! > values[start + numLevels - 1]!;
      let low = 0;
      let high = numLevels - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        const isBefore = isFalling ? values[start + middle]! >= value : values[start + middle]! <= value;
        if (isBefore) low = middle;
        else high = middle;
      }
      return Math.abs(values[start + high]! - value) < Math.abs(values[start + low]! - value) ? high : low;
    },
    valueOf: (index, level) => values[tableAt(index) + level]!,
  };
}
