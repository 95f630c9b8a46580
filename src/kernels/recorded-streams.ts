import type { KernelPack } from './contract.ts';
import { OPCODES } from './opcodes.ts';
import type { RecordedPackParts } from './recorded-parts.ts';

/** Operations of recorded packs on several residual streams, and on the statistics of rows. */
export function createRecordedStreams(
  record: RecordedPackParts['record'],
): Pick<KernelPack, 'mixStreams' | 'matchLengths' | 'sparsify'> {
  return {
    mixStreams({ base, x, coefficients, out, numOut, numIn, numRows, dim, shift }) {
      const words = [base, x, coefficients, out, numOut, numIn, numRows, dim, { f32: shift }];
      record(OPCODES.mixStreams, words, 'barrier', numRows);
    },
    matchLengths: ({ x, target, numRows, dim }) =>
      record(OPCODES.matchLengths, [x, target, numRows, dim], 'barrier', numRows),
    sparsify: ({ x, numRows, dim, threshold }) =>
      record(OPCODES.sparsify, [x, numRows, dim, { f32: threshold }], 'barrier', numRows),
  };
}
