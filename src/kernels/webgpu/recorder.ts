import type { Offset } from '../contract.ts';
import type { KernelParams } from './program.ts';
import type { KernelSource } from './wgsl/common.ts';

/** How operations become dispatches; offsets of the arena are in bytes, parameters in words. */
export interface Recorder {
  add(kernel: KernelSource, params: KernelParams, groups: readonly [number, number?, number?], chunk?: number): void;
  /** Elementwise operations by number, see `MAP_KINDS`. */
  map(kind: number, x: Offset, y: Offset, out: Offset, count: number, factor?: number): void;
  wrote(offset: Offset, sizeBytes: number): void;
  /** Workgroups for so many threads, within the limit of a dimension. */
  groupsFor(count: number): number;
  /** Reserves vectors of scratch for good; returns the first. */
  reserveScratch(vectors: number): number;
  /** Vectors of scratch until the next operation, behind the reserved ones. */
  borrowScratch(vectors: number): number;
}
