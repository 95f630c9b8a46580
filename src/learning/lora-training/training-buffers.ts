import { type KvRegion, kvLayerBytes, type Offset, PAGE_TOKENS } from '../../kernels/contract.ts';
import type { DecoderShape } from '../../models/types.ts';
import type { ParameterLayout } from './parameter-layout.ts';

/** Activations of a layer; layers with gradients have their own, all others share one set. */
export interface LayerBuffers {
  /** f32[maxTokens × embeddingDim] each: input, its norm, the sum after attention, its norm */
  readonly input: Offset;
  readonly attentionInput: Offset;
  readonly middle: Offset;
  readonly feedForwardInput: Offset;
  /** f32[maxTokens × numHeads × headDim]; before the head norm, or the same as `q` without one */
  readonly rawQ: Offset;
  readonly rawK: Offset;
  /** Rotated. */
  readonly q: Offset;
  readonly k: Offset;
  readonly v: Offset;
  readonly attended: Offset;
  /** f32[maxTokens × feedForwardDim] each; `activated` = silu(gate) · up */
  readonly gate: Offset;
  readonly up: Offset;
  readonly activated: Offset;
}

export interface TrainingBuffers {
  readonly parameters: Offset;
  readonly layers: readonly LayerBuffers[];
  /** f32[maxTokens × embeddingDim]: output of the last layer, and its norm */
  readonly residual: Offset;
  readonly normalized: Offset;
  /** f32[maxTokens × rotaryDim] */
  readonly cosSin: Offset;
  readonly slots: Offset;
  readonly sequence: Offset;
  readonly pageTable: Offset;
  readonly kv: KvRegion;
  /** f32[maxTokens × rank] */
  readonly lowRankScratch: Offset;
  /** f32[HEAD_ROWS × vocabSize], one part of the head after the other */
  readonly logits: Offset;
  readonly gradients: GradientBuffers;
}

/** Gradients of the current layer's activations; same shapes. */
export interface GradientBuffers {
  readonly residual: Offset;
  readonly hidden: Offset;
  readonly q: Offset;
  readonly k: Offset;
  readonly v: Offset;
  readonly attended: Offset;
  readonly gate: Offset;
  readonly up: Offset;
  readonly activated: Offset;
}

/** Rows of logits at a time: enough for full speed, 8 MiB for a vocabulary of 32 000. */
export const HEAD_ROWS = 64;

export interface BufferPlan {
  readonly shape: DecoderShape;
  readonly layout: ParameterLayout;
  readonly maxTokens: number;
  readonly rotaryDim: number;
  readonly hasHeadNorms: boolean;
  readonly firstLayer: number;
}

/** Called once with a counting allocator and once with the arena's. */
export function allocateTraining(
  { shape, layout, maxTokens, rotaryDim, hasHeadNorms, firstLayer }: BufferPlan,
  allocate: (sizeBytes: number, what: string) => Offset,
): TrainingBuffers {
  const { embeddingDim, feedForwardDim, numKvHeads, headDim, vocabSize } = shape;
  const rows = (width: number): Offset => allocate(maxTokens * width * 4, 'activations of training');
  const [qDim, kvDim] = [shape.numHeads * headDim, numKvHeads * headDim];
  const layerBuffers = (): LayerBuffers => {
    const [q, k] = [rows(qDim), rows(kvDim)];
    return {
      input: rows(embeddingDim),
      attentionInput: rows(embeddingDim),
      middle: rows(embeddingDim),
      feedForwardInput: rows(embeddingDim),
      rawQ: hasHeadNorms ? rows(qDim) : q,
      rawK: hasHeadNorms ? rows(kvDim) : k,
      q,
      k,
      v: rows(kvDim),
      attended: rows(qDim),
      gate: rows(feedForwardDim),
      up: rows(feedForwardDim),
      activated: rows(feedForwardDim),
    };
  };
  const shared = firstLayer > 0 ? layerBuffers() : null;
  const layers = Array.from({ length: shape.numLayers }, (_, layer) => (layer < firstLayer ? shared! : layerBuffers()));
  const numPages = Math.ceil(maxTokens / PAGE_TOKENS);
  const layerBytes = kvLayerBytes(numKvHeads, headDim, 'f32');
  return {
    parameters: allocate(layout.numParameters * 4, 'low-rank factors'),
    layers,
    residual: rows(embeddingDim),
    normalized: rows(embeddingDim),
    cosSin: rows(rotaryDim),
    slots: rows(1),
    sequence: allocate(16, 'a sequence'),
    pageTable: allocate(numPages * 4, 'a page table'),
    // Each layer overwrites K and V of the last: only the current layer attends.
    kv: {
      base: allocate(numPages * layerBytes, 'K and V'),
      pageBytes: layerBytes,
      layerBytes,
      numPages,
      numKvHeads,
      headDim,
      precision: 'f32',
    },
    lowRankScratch: rows(layout.rank),
    logits: allocate(Math.min(HEAD_ROWS, maxTokens) * vocabSize * 4, 'logits'),
    gradients: {
      residual: rows(embeddingDim),
      hidden: rows(embeddingDim),
      q: rows(qDim),
      k: rows(kvDim),
      v: rows(kvDim),
      attended: rows(qDim),
      gate: rows(feedForwardDim),
      up: rows(feedForwardDim),
      activated: rows(feedForwardDim),
    },
  };
}
