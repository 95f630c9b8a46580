import type { KernelPack, KvRegion } from '../kernels/contract.ts';
import type { ActivationBuffers } from './activations.ts';
import type { RopeVariant } from './rope.ts';
import type { DecoderShape, AdapterWeights } from './types.ts';
import type { Offset } from '../kernels/arena-alignment.ts';

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

/** An adapter in a step, with the rows it is for. */
export interface StepDelta {
  readonly sites: AdapterSites;
  /** On top of what its own weights say. */
  readonly scale: number;
  /** int32: rows of the step. */
  readonly rows: Offset;
  readonly numRows: number;
  /** int32: places of these rows among the rows with logits. */
  readonly logitRows: Offset;
  readonly numLogitRows: number;
}

/** Weights by the projection they add to. */
export type AdapterSites = ReadonlyMap<string, AdapterWeights>;
