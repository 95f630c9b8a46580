import type { LayerTensors, PackedReader } from './hf-tensor.ts';

const VALUES_PER_BLOCK = 32;
const CODES_PER_BLOCK = 16;
const BLOCK_BYTES = 1 + CODES_PER_BLOCK;

/** A stack of matrices in MXFP4: bytes of codes and scales in two tensors of the checkpoint. */
export interface Mxfp4Stack {
  /** Names end with `_blocks` and `_scales`. */
  readonly from: string;
  readonly count: number;
  readonly numRows: number;
  readonly numCols: number;
  /** Rows of all matrices are counted together. */
  readonly sourceOf: (row: number) => number;
  /** Rows of one matrix in the checkpoint. */
  readonly sourceRows: number;
}

/**
 * The blocks of a GGUF file: each has its scale before the codes, and byte j has values j and j + 16. The checkpoint's byte j has the
 * neighbours 2j and 2j + 1, the first in its low half.
 */
export function readMxfp4(source: LayerTensors, stack: Mxfp4Stack): PackedReader {
  const { from, count, numCols, sourceOf, sourceRows } = stack;
  const perRow = numCols / VALUES_PER_BLOCK;
  const readCodes = source.bytes(`${from}_blocks`, [count, sourceRows, perRow, CODES_PER_BLOCK]);
  const readScales = source.bytes(`${from}_scales`, [count, sourceRows, perRow]);
  return {
    type: 'MXFP4',
    readBlocks(firstBlock, out) {
      const numBlocks = out.length / BLOCK_BYTES;
      for (let done = 0; done < numBlocks;) {
        // The blocks of one row, or those that are missing of it.
        const block = firstBlock + done;
        const row = Math.floor(block / perRow);
        const inRow = block - row * perRow;
        const length = Math.min(perRow - inRow, numBlocks - done);
        const at = sourceOf(row) * perRow + inRow;
        const [codes, scales] = [new Uint8Array(length * CODES_PER_BLOCK), new Uint8Array(length)];
        readCodes(at * CODES_PER_BLOCK, codes);
        readScales(at, scales);
        for (let i = 0; i < length; i++) {
          const to = (done + i) * BLOCK_BYTES;
          out[to] = scales[i]!;
          packCodes(codes, i * CODES_PER_BLOCK, out, to + 1);
        }
        done += length;
      }
    },
  };
}

function packCodes(codes: Uint8Array, at: number, out: Uint8Array, to: number): void {
  const codeOf = (value: number): number => (codes[at + (value >> 1)]! >> (4 * (value % 2))) & 15;
  for (let j = 0; j < CODES_PER_BLOCK; j++) out[to + j] = codeOf(j) | (codeOf(j + CODES_PER_BLOCK) << 4);
}
