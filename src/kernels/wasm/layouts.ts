import type { TensorTypeName } from '../../core/tensor-type.ts';
import type { RecordedLayout } from '../recorded-parts.ts';

/** Rows interleaved in one group: the 32-bit lanes of a WASM vector. */
export const GROUP_ROWS = 4;

const TILE_TOKENS = 4;
const ROUND_Q4 = 0;
const ROUND_I16 = 1;
const ROUND_I16_K = 2;
const ROUND_K = 3;
const ROUND_SPLIT = 4;
const ROUND_SPLIT_K = 5;
const ROUND_BF16 = 6;

const floats = (id: number, bytes: number): RecordedLayout => ({
  id,
  blockCols: 1,
  blockBytes: 4 * bytes,
  activation: null,
  tileTokens: 1,
  activationBytesPerCol: 0,
});
const eightBits = (activation: number): RecordedLayout => ({
  id: 4,
  blockCols: 32,
  blockBytes: 136,
  activation,
  tileTokens: TILE_TOKENS,
  activationBytesPerCol: 76 / 32,
});
const eightBitsWithMins = (activation: number): RecordedLayout => ({
  id: 5,
  blockCols: 32,
  blockBytes: 176,
  activation,
  tileTokens: TILE_TOKENS,
  activationBytesPerCol: 76 / 32,
});
const codebook = (id: number, activation: number): RecordedLayout => ({
  id,
  blockCols: 32,
  blockBytes: 88,
  activation,
  tileTokens: TILE_TOKENS,
  activationBytesPerCol: 68 / 32,
});
const codebookOfHalves = (id: number, activation: number): RecordedLayout => ({
  ...codebook(id, activation),
  blockBytes: 112,
});
const kQuant = (id: number, blockBytes: number): RecordedLayout => ({
  id,
  blockCols: 256,
  blockBytes,
  activation: ROUND_K,
  tileTokens: TILE_TOKENS,
  activationBytesPerCol: 308 / 256,
});

/**
 * Numbers and sizes must match assembly/layouts.ts and assembly/round-activations.ts. Formats without their own layout
 * use the nearest one that holds their values exactly.
 */
export const WASM_LAYOUTS: Readonly<Record<TensorTypeName, RecordedLayout>> = {
  F32: floats(0, 4),
  F16: floats(1, 2),
  BF16: { ...floats(2, 2), activation: ROUND_BF16, activationBytesPerCol: 4 },
  Q4_0: {
    id: 3,
    blockCols: 32,
    blockBytes: 72,
    activation: ROUND_Q4,
    tileTokens: TILE_TOKENS,
    activationBytesPerCol: 40 / 32,
  },
  Q8_0: eightBits(ROUND_I16),
  Q5_0: eightBits(ROUND_I16),
  IQ4_NL: codebook(8, ROUND_SPLIT),
  Q4_1: eightBitsWithMins(ROUND_I16),
  Q5_1: eightBitsWithMins(ROUND_I16),
  Q2_K: eightBitsWithMins(ROUND_I16_K),
  Q5_K: eightBitsWithMins(ROUND_I16_K),
  Q3_K: eightBits(ROUND_I16_K),
  IQ2_XXS: codebook(9, ROUND_SPLIT_K),
  IQ4_XS: codebook(8, ROUND_SPLIT_K),
  MXFP4: codebook(10, ROUND_SPLIT),
  Q1_0: codebook(10, ROUND_SPLIT),
  Q2_0: codebook(10, ROUND_SPLIT),
  TQ1_0: codebook(10, ROUND_SPLIT_K),
  TQ2_0: codebook(10, ROUND_SPLIT_K),
  IQ3_XXS: codebook(11, ROUND_SPLIT_K),
  IQ3_S: codebook(12, ROUND_SPLIT_K),
  IQ1_S: codebook(12, ROUND_SPLIT_K),
  IQ2_XS: codebookOfHalves(13, ROUND_SPLIT_K),
  IQ2_S: codebookOfHalves(13, ROUND_SPLIT_K),
  NVFP4: codebookOfHalves(14, ROUND_SPLIT),
  IQ1_M: codebookOfHalves(15, ROUND_SPLIT_K),
  Q8_K: eightBitsWithMins(ROUND_I16_K),
  Q4_K: kQuant(6, 608),
  Q6_K: kQuant(7, 848),
};
