import type { TensorTypeName } from '../core/tensor-type.ts';
import type { KernelPack, Offset, WeightImages } from '../kernels/contract.ts';

/** A weight as it lies among the others: `offset` counts from the first. */
export interface PlacedWeight {
  readonly name: string;
  /** null: a vector, kept as f32. */
  readonly type: TensorTypeName | null;
  readonly numRows: number;
  readonly numCols: number;
  readonly offset: number;
  readonly sizeBytes: number;
}

/** All weights of a model in an arena. */
export interface WeightRange {
  readonly pack: KernelPack;
  readonly images: WeightImages;
  readonly offset: Offset;
  readonly sizeBytes: number;
  readonly weights: readonly PlacedWeight[];
}

/** Keeps packed weights between loads. Neither function throws for want of a good image or of room for one. */
export interface WeightStore {
  /** Fills the range from an earlier load of the same file; false: nothing was changed. */
  restore(range: WeightRange): boolean;
  /** Offers weights that were loaded the long way. */
  save(range: WeightRange): void;
}
