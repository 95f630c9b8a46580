import type { KernelPack, KvRegion } from '../kernels/contract.ts';
import type { ActivationBuffers } from './activations.ts';
import type { RopeVariant } from './rope.ts';
import type { StepDelta } from './step-adapters.ts';
import type { DecoderShape } from './types.ts';

/** What a forward pass works on: its inputs are already in the buffers. */
export interface DecoderStep {
  readonly pack: KernelPack;
  readonly shape: DecoderShape;
  readonly kv: KvRegion;
  /** The same memory, for entries of page tables below zero. */
  readonly packed: KvRegion | null;
  readonly buffers: ActivationBuffers;
  readonly ropes: readonly RopeVariant[];
  readonly numTokens: number;
  readonly numSequences: number;
  readonly numLogitRows: number;
  readonly numHiddenRows: number;
  /** null: no row has an adapter. */
  readonly adapters: readonly StepDelta[] | null;
}
