import type { TensorTypeName } from '../core/tensor-type.ts';
import type { KernelPack, Offset, WeightImages } from '../kernels/contract.ts';

/** A weight's position in the range: `offset` counts from the first. */
export interface PlacedWeight {
  readonly name: string;
  /** Null: a vector, stored as f32. */
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

/** Keeps packed weights between loads. Neither function throws if no valid image exists or no space is left. */
export interface WeightStore {
  /** Fills the range from an earlier load of the same file; false: nothing changed. */
  restore(range: WeightRange): boolean;
  /** Stores weights after a full load. */
  save(range: WeightRange): void;
}
