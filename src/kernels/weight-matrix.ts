import type { TensorTypeName } from '../core/tensor-type.ts';
import type { Offset } from './arena-alignment.ts';

/** A matrix in the pack's layout; only the pack that created it can use it. */
export interface WeightMatrix {
  readonly name: string;
  readonly type: TensorTypeName;
  readonly numRows: number;
  readonly numCols: number;
  readonly offset: Offset;
  readonly sizeBytes: number;
}
