import type { KernelPack, Offset } from '../../kernels/contract.ts';
import type { RopeVariant } from '../../models/rope.ts';
import type { DecoderShape } from '../../models/types.ts';
import type { LayoutMatrix, ParameterLayout } from './parameter-layout.ts';
import type { TrainingBuffers } from './training-buffers.ts';
import type { TrainingWeights } from './training-weights.ts';

/** Data of the forward and backward passes for one example. */
export interface TrainingStep {
  readonly pack: KernelPack;
  readonly shape: DecoderShape;
  readonly layout: ParameterLayout;
  readonly weights: TrainingWeights;
  readonly buffers: TrainingBuffers;
  readonly rope: RopeVariant;
  readonly epsilon: number;
  readonly window: number;
  readonly numTokens: number;
  /** False: without the low-rank factors. */
  readonly isAdapted: boolean;
  /** The factors of a matrix; undefined if it has none. */
  adapted(target: LayoutMatrix['target'], layer: number): LayoutMatrix | undefined;
}

/** out += scale · B · (A · x) if the matrix is adapted; rows of B from `firstRow`. */
export function addLowRank(
  { pack, layout, buffers, isAdapted }: TrainingStep,
  matrix: LayoutMatrix | undefined,
  x: Offset,
  out: Offset,
  numTokens: number,
  part: { readonly firstRow: number; readonly numRows: number } | null = null,
): void {
  if (matrix === undefined || !isAdapted) return;
  const { rank, scale } = layout;
  const firstRow = part?.firstRow ?? 0;
  pack.lowRankDelta({
    x,
    numTokens,
    numCols: matrix.numCols,
    a: buffers.parameters + matrix.aStart * 4,
    b: buffers.parameters + (matrix.bStart + firstRow * rank) * 4,
    rank,
    scale,
    rows: null,
    out,
    numRows: part?.numRows ?? matrix.numRows,
    scratch: buffers.lowRankScratch,
  });
}
