import type { KernelPack, KvRegion } from '../kernels/contract.ts';
import type { ActivationBuffers } from './activations.ts';
import type { RopeVariant } from './rope.ts';
import type { StepDelta } from './step-adapters.ts';
import type { DecoderShape } from './types.ts';

/** State of a forward pass; its inputs are already in the buffers. */
export interface DecoderStep {
  readonly pack: KernelPack;
  readonly shape: DecoderShape;
  readonly kv: KvRegion;
  /** The same memory, for negative entries of page tables. */
  readonly packed: KvRegion | null;
  readonly buffers: ActivationBuffers;
  readonly ropes: readonly RopeVariant[];
  readonly numTokens: number;
  readonly numSequences: number;
  readonly numLogitRows: number;
  readonly numHiddenRows: number;
  /** Null: no row has an adapter. */
  readonly adapters: readonly StepDelta[] | null;
}
