import type { KernelPack, StateRegion } from '../kernels/contract.ts';
import type { ActivationBuffers } from './activations.ts';
import type { KvLayer } from './kv-layout.ts';
import type { RopeVariant } from './rope.ts';
import type { DecoderShape, AdapterWeights } from './types.ts';
import type { Offset } from '../kernels/arena-alignment.ts';

/** State of a forward pass; its inputs are already in the buffers. */
export interface DecoderStep {
  readonly pack: KernelPack;
  readonly shape: DecoderShape;
  /** One entry per layer with keys and values. */
  readonly kvLayers: readonly KvLayer[];
  /** Null: no layer is recurrent. */
  readonly states: StateRegion | null;
  readonly buffers: ActivationBuffers;
  readonly ropes: readonly RopeVariant[];
  readonly numTokens: number;
  readonly numSequences: number;
  readonly numLogitRows: number;
  readonly numHiddenRows: number;
  /** Runs of rows whose input is in `hidden` already, and not their token's vector. */
  readonly vectors: readonly { readonly firstRow: number; readonly numRows: number }[];
  /** Null: no row has an adapter. */
  readonly adapters: readonly StepDelta[] | null;
}

/** An adapter in a step, with its rows. */
export interface StepDelta {
  readonly sites: AdapterSites;
  /** In addition to the scale in its weights. */
  readonly scale: number;
  /** int32: rows of the step. */
  readonly rows: Offset;
  readonly numRows: number;
  /** int32: positions of these rows among the rows with logits. */
  readonly logitRows: Offset;
  readonly numLogitRows: number;
}

/** Weights by the projection they change. */
export type AdapterSites = ReadonlyMap<string, AdapterWeights>;
