import { RuvLLMError } from '../../core/errors.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { quantFormats } from '../../quant/index.ts';
import { packedMin, packedScale } from '../../quant/k-scales.ts';
import { BLOCK_COLS } from './weight-layouts.ts';

/** Rows of a matrix in the file's blocks, and their places in the layout. */
export interface RowsToPack {
  readonly bytes: Uint8Array;
  readonly numRows: number;
  readonly numCols: number;
  /** Zeroed. */
  readonly quants: Uint8Array;
  readonly info: Uint8Array;
}

/** Writes rows in the pack's layout; returns false if a scale is not finite. */
type Repack = (rows: RowsToPack) => boolean;

const isFiniteHalf = (low: number, high: number): boolean => ((low | (high << 8)) & 0x7c00) !== 0x7c00;

const repackQ4_0: Repack = ({ bytes, quants, info }) => {
  const numBlocks = bytes.length / 18;
  let isFinite = true;
  for (let b = 0, from = 0, to = 0; b < numBlocks; b++, from += 18, to += 16) {
    for (let i = 0; i < 16; i++) quants[to + i] = bytes[from + 2 + i]!;
    info[2 * b] = bytes[from]!;
    info[2 * b + 1] = bytes[from + 1]!;
    isFinite &&= isFiniteHalf(bytes[from]!, bytes[from + 1]!);
  }
  return isFinite;
};

const repackQ8_0: Repack = ({ bytes, quants, info }) => {
  const numBlocks = bytes.length / 34;
  let isFinite = true;
  for (let b = 0, from = 0, to = 0; b < numBlocks; b++, from += 34, to += 32) {
    for (let i = 0; i < 32; i++) quants[to + i] = bytes[from + 2 + i]!;
    info[2 * b] = bytes[from]!;
    info[2 * b + 1] = bytes[from + 1]!;
    isFinite &&= isFiniteHalf(bytes[from]!, bytes[from + 1]!);
  }
  return isFinite;
};

/** A block of 32 levels below 16 as Q4_0 stores them: value i beside value i + 16. */
function packNibbles(levels: Uint8Array, from: number, quants: Uint8Array, to: number): void {
  for (let i = 0; i < 16; i++) quants[to + i] = (levels[from + i]! & 15) | ((levels[from + i + 16]! & 15) << 4);
}

const levels = new Uint8Array(256);

const repackQ4_K: Repack = ({ bytes, quants, info }) => {
  const numSupers = bytes.length / 144;
  let isFinite = true;
  for (let s = 0, at = 0; s < numSupers; s++, at += 144) {
    isFinite &&= isFiniteHalf(bytes[at]!, bytes[at + 1]!) && isFiniteHalf(bytes[at + 2]!, bytes[at + 3]!);
    for (let i = 0; i < 4; i++) info[20 * s + i] = bytes[at + i]!;
    for (let sub = 0; sub < 8; sub++) {
      info[20 * s + 4 + 2 * sub] = packedScale(bytes, at + 4, sub);
      info[20 * s + 5 + 2 * sub] = packedMin(bytes, at + 4, sub);
      const shift = (sub & 1) * 4;
      for (let l = 0; l < 32; l++) levels[32 * sub + l] = (bytes[at + 16 + (sub >> 1) * 32 + l]! >> shift) & 15;
    }
    for (let sub = 0; sub < 8; sub++) packNibbles(levels, 32 * sub, quants, (8 * s + sub) * 16);
  }
  return isFinite;
};

const repackQ6_K: Repack = ({ bytes, quants, info }) => {
  const numSupers = bytes.length / 210;
  let isFinite = true;
  for (let s = 0, at = 0; s < numSupers; s++, at += 210) {
    isFinite &&= isFiniteHalf(bytes[at + 208]!, bytes[at + 209]!);
    for (let i = 0; i < 256; i++) {
      const low = (bytes[at + (i >> 7) * 64 + (i & 63)]! >> (((i >> 6) & 1) * 4)) & 15;
      const high = (bytes[at + 128 + (i >> 7) * 32 + (i & 31)]! >> (((i >> 5) & 3) * 2)) & 3;
      levels[i] = low | (high << 4);
    }
    for (let sub = 0; sub < 8; sub++) {
      const to = (8 * s + sub) * 12;
      packNibbles(levels, 32 * sub, quants, (8 * s + sub) * 16);
      // Bits of value 4w + i of each half are at bit 8i + 2w of its word.
      for (let i = 0; i < 32; i++) {
        info[to + (i >> 4) * 4 + (i & 3)]! |= (levels[32 * sub + i]! >> 4) << (2 * ((i >> 2) & 3));
      }
      info[to + 8] = bytes[at + 192 + 2 * sub]!;
      info[to + 9] = bytes[at + 193 + 2 * sub]!;
      info[to + 10] = bytes[at + 208]!;
      info[to + 11] = bytes[at + 209]!;
    }
  }
  return isFinite;
};

/** Half or bfloat rows, padded to whole blocks. */
const repackWords =
  (bytesPerValue: number): Repack =>
  ({ bytes, numRows, numCols, quants }) => {
    const rowBytes = numCols * bytesPerValue;
    const paddedBytes = Math.ceil(numCols / BLOCK_COLS) * BLOCK_COLS * bytesPerValue;
    for (let row = 0; row < numRows; row++) {
      quants.set(bytes.subarray(row * rowBytes, (row + 1) * rowBytes), row * paddedBytes);
    }
    return true;
  };

/** Larger scales overflow sums that are finite in other packs; no weight is that large. */
const MAX_SCALE = 2 ** 100;

const repackLevels =
  (type: TensorTypeName): Repack =>
  ({ bytes, quants, info }) => {
    const { blockSize, blockBytes, decodeLevels } = quantFormats[type];
    const numBlocks = bytes.length / blockBytes;
    const signed = new Int8Array(quants.buffer, quants.byteOffset, quants.length);
    const scales = new Float32Array((numBlocks * blockSize) / 16);
    for (let b = 0; b < numBlocks; b++) {
      decodeLevels!(bytes, b * blockBytes, signed, b * blockSize, scales, (b * blockSize) / 16);
    }
    const numbers = new Float32Array(info.buffer, info.byteOffset, info.length / 4);
    for (let i = 0; i < scales.length; i++) numbers[4 * (i >> 1) + (i & 1)] = scales[i]!;
    return scales.every((scale) => Math.abs(scale) < MAX_SCALE);
  };

/** Decoded values as f32, for types whose levels are not whole numbers of one scale. */
const repackValues =
  (type: TensorTypeName): Repack =>
  ({ bytes, numRows, numCols, quants }) => {
    const { blockSize, dequantize } = quantFormats[type];
    const values = new Float32Array(quants.buffer, quants.byteOffset, numRows * numCols);
    dequantize(bytes, 0, values, 0, values.length / blockSize);
    return values.every((value) => Number.isFinite(value));
  };

const REPACKS: Partial<Record<TensorTypeName, Repack>> = {
  F32: repackWords(4),
  F16: repackWords(2),
  BF16: repackWords(2),
  Q4_0: repackQ4_0,
  Q8_0: repackQ8_0,
  Q4_K: repackQ4_K,
  Q6_K: repackQ6_K,
};

/** Writes rows in the pack's layout; throws `invalid_model_file` if a scale is not finite. */
export function repackRows(name: string, type: TensorTypeName, firstRow: number, rows: RowsToPack): void {
  const repack =
    REPACKS[type] ?? (quantFormats[type].decodeLevels === undefined ? repackValues(type) : repackLevels(type));
  if (repack(rows)) return;
  throw new RuvLLMError(
    'invalid_model_file',
    `${name} (${type}) has a scale that is infinite, too large or not a number in rows ${firstRow} to ${firstRow + rows.numRows - 1}`,
    { data: { name, type, firstRow, numRows: rows.numRows } },
  );
}
