import { assert } from '../core/errors.ts';
import type { TopLogits } from '../core/top-logits.ts';
import { type ArenaRange, type KernelPack, TOP_STATS } from '../kernels/contract.ts';
import type { ActivationBuffers } from './activations.ts';

/** The top logits of a step's rows. */
export interface TopRows {
  /** Names the rows of the next step and their k; 0: none. */
  request(numRows: number, k: number): void;
  record(): void;
  /** The results of the recorded request. */
  reads(): ArenaRange[];
  read(row: number): TopLogits;
}

export function createTopRows(pack: KernelPack, buffers: ActivationBuffers, vocabSize: number): TopRows {
  const { logits, topValues: values, topIds: ids, topStats: stats, topScratch: scratch } = buffers;
  let recorded = { numRows: 0, k: 0 };
  return {
    request: (numRows, k) => void (recorded = { numRows: k === 0 ? 0 : numRows, k }),
    record() {
      const { numRows, k } = recorded;
      if (k > 0) pack.topLogits({ logits, numRows, vocabSize, k, values, ids, stats, scratch });
    },
    reads() {
      const { numRows, k } = recorded;
      return [
        { offset: ids, sizeBytes: numRows * k * 4 },
        { offset: values, sizeBytes: numRows * k * 4 },
        { offset: stats, sizeBytes: numRows * TOP_STATS * 4 },
      ];
    },
    read(row) {
      const { numRows, k } = recorded;
      assert(row >= 0 && row < numRows, `top logits of row ${row}, the step requested ${numRows} rows`);
      const { arena } = pack;
      const [max, sumExp, numBad] = arena.f32(stats + row * TOP_STATS * 4, TOP_STATS);
      return {
        ids: arena.i32(ids + row * k * 4, k),
        values: arena.f32(values + row * k * 4, k),
        max: max!,
        sumExp: sumExp!,
        numBad: numBad!,
      };
    },
  };
}
