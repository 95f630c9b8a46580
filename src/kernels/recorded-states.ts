import type { KernelPack, StateRows } from './contract.ts';
import { checkConv, checkDelta, checkScan } from './op-limits.ts';
import { OPCODES } from './opcodes.ts';
import type { RecordedPackParts } from './recorded-parts.ts';

/** Channels of a chunk of a convolution: all rows of a sequence depend on each other, channels do not. */
const CONV_CHANNELS = 64;

const stateWords = ({ states, partOffset, sequences, stateTable, numSequences }: StateRows): number[] => [
  states.base + partOffset,
  states.stateBytes,
  sequences,
  stateTable,
  numSequences,
];

/** Operations with a state from token to token. */
export function createRecordedStates(
  record: RecordedPackParts['record'],
): Pick<KernelPack, 'causalConv' | 'selectiveScan' | 'deltaScan'> {
  return {
    causalConv(op) {
      checkConv(op);
      const { x, weight, bias, out, channels, width, activation } = op;
      const words = [...stateWords(op), x, weight, bias ?? 0, out, channels, width, activation === 'silu' ? 1 : 0];
      record(OPCODES.causalConv, words, 'barrier', Math.ceil(channels / CONV_CHANNELS));
    },

    selectiveScan(op) {
      checkScan(op);
      const { x, dt, dtBias, a, d, b, c, out, numHeads, headDim, numGroups, stateDim } = op;
      const words = [...stateWords(op), x, dt, dtBias, a, d, b, c, out, numHeads, headDim, numGroups, stateDim];
      record(OPCODES.selectiveScan, words, 'barrier', numHeads);
    },

    deltaScan(op) {
      checkDelta(op);
      const { q, k, v, dt, dtBias, a, beta, out, numHeads, numKeyHeads, keyDim, valueDim, sharing, epsilon } = op;
      const sizes = [numHeads, numKeyHeads, keyDim, valueDim, sharing === 'every' ? 1 : 0, { f32: epsilon }];
      record(OPCODES.deltaScan, [...stateWords(op), q, k, v, dt, dtBias, a, beta, out, ...sizes], 'barrier', numHeads);
    },
  };
}
