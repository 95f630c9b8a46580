import type { Offset } from './arena-alignment.ts';

/** Recurrent states of sequences, f32: state s starts at base + s * stateBytes. */
export interface StateRegion {
  readonly base: Offset;
  readonly stateBytes: number;
  readonly numStates: number;
}

/** Which rows continue which state. Rows of a sequence are computed in order, so a split into steps changes no bit. */
export interface StateRows {
  states: StateRegion;
  /** Byte offset of this layer's part of a state. */
  partOffset: number;
  /** int32[numSequences × 4]: first row, number of rows, context tokens after this step, unused. The first rows start from zeros. */
  sequences: Offset;
  /** int32[numSequences × 3]: state, rows after which it is also copied (0: never), state of the copy */
  stateTable: Offset;
  numSequences: number;
}

/** Arguments of `causalConv`. */
export interface CausalConvOp extends StateRows {
  /** f32[numTokens × channels] */
  x: Offset;
  /** f32[width × channels]: the last row is multiplied with the token itself. */
  weight: Offset;
  /** f32[channels], or null */
  bias: Offset | null;
  /** f32[numTokens × channels], not `x` */
  out: Offset;
  channels: number;
  /** Tokens that a result depends on, 2 to `MAX_CONV_WIDTH`. A part of the state is f32[(width - 1) × channels], oldest token first. */
  width: number;
  activation: 'none' | 'silu';
}

/** Largest width of `causalConv`; packs keep that many rows at hand. */
export const MAX_CONV_WIDTH = 8;

/** Arguments of `selectiveScan`: the recurrence of Mamba 2. */
export interface SelectiveScanOp extends StateRows {
  /** f32[numTokens × numHeads × headDim] */
  x: Offset;
  /** f32[numTokens × numHeads]: step sizes before the bias and softplus */
  dt: Offset;
  /** f32[numHeads] */
  dtBias: Offset;
  /** f32[numHeads]: negative decay rates */
  a: Offset;
  /** f32[numHeads] */
  d: Offset;
  /** f32[numTokens × numGroups × stateDim] */
  b: Offset;
  c: Offset;
  /** f32[numTokens × numHeads × headDim]; may be `x` */
  out: Offset;
  numHeads: number;
  headDim: number;
  numGroups: number;
  /** A multiple of 4. A part of the state is f32[numHeads × headDim × stateDim]. */
  stateDim: number;
}

/** Arguments of `deltaScan`: the recurrence of gated delta nets. */
export interface DeltaScanOp extends StateRows {
  /** f32[numTokens × numKeyHeads × keyDim], of any length */
  q: Offset;
  k: Offset;
  /** f32[numTokens × numHeads × valueDim] */
  v: Offset;
  /** f32[numTokens × numHeads]: step sizes before the bias and softplus */
  dt: Offset;
  /** f32[numHeads] */
  dtBias: Offset;
  /** f32[numHeads]: negative decay rates */
  a: Offset;
  /** f32[numTokens × numHeads]: strengths of the updates before the sigmoid */
  beta: Offset;
  /** f32[numTokens × numHeads × valueDim]; may be `v` */
  out: Offset;
  numHeads: number;
  numKeyHeads: number;
  /** A multiple of 4. A part of the state is f32[numHeads × valueDim × keyDim]. */
  keyDim: number;
  valueDim: number;
  /** Heads share a key head with their neighbours, or with every numKeyHeads-th head. */
  sharing: 'neighbours' | 'every';
  /** Smallest length that q and k are divided by. */
  epsilon: number;
}
