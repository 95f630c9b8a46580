import type { PackedKvPrecision, KvPrecision, Offset } from '../kernels/contract.ts';
import { kvHeadsOf, kvPageBytes, PACKED_UNIT_BYTES } from './kv-layout.ts';
import type { DecoderShape } from './types.ts';

/** The layers from `firstGpuLayer` on have weights and KV pages on the GPU, the others on the processor. */
export interface LayerSplit {
  readonly firstGpuLayer: number;
  /** Matrices of operations that the GPU lacks: they are on the processor in every layer. */
  readonly hostMatrices: ReadonlySet<string>;
}

const LAYER_NAME = /^blk\.(\d+)\./;

/**
 * The side of a weight. The output layer follows the last layers. Tables of tokens stay on the processor, which reads single
 * rows of them; an output layer that shares its table stays with it.
 */
export function sideOfWeight(
  { firstGpuLayer, hostMatrices }: LayerSplit,
  name: string,
  numLayers: number,
): 'gpu' | 'cpu' {
  if (hostMatrices.has(name)) return 'cpu';
  const layer = LAYER_NAME.exec(name)?.[1];
  if (layer !== undefined) return Number(layer) >= firstGpuLayer ? 'gpu' : 'cpu';
  return name === 'output.weight' && firstGpuLayer < numLayers ? 'gpu' : 'cpu';
}

/** For each layer with keys and values, in their order: whether its pages are on the GPU. */
export function gpuKvLayers({ firstGpuLayer }: LayerSplit, shape: DecoderShape): readonly boolean[] {
  const { numLayers, recurrentLayers = [] } = shape;
  const withAttention = Array.from({ length: numLayers }, (_, layer) => layer).filter(
    (layer) => !recurrentLayers.includes(layer),
  );
  // Layers that share the keys of earlier ones are the last, and have no pages.
  return kvHeadsOf(shape).map((_, i) => withAttention[i]! >= firstGpuLayer);
}

/** KV pages of the layers on the GPU: page p, and packed page p, lie at the same share of their region as on the processor. */
export interface GpuPages {
  /** Bytes for `PACKED_UNIT_BYTES` of a page of all layers. */
  readonly unitBytes: number;
  readonly isOnGpu: readonly boolean[];
}

export interface PlacedGpuPages extends GpuPages {
  readonly base: Offset;
}

/** Packs read pages in words. */
const WORD_BYTES = 4;

/** The smallest unit for which no two pages overlap, float or packed; null: no layer with pages is on the GPU. */
export function planGpuPages(
  split: LayerSplit,
  shape: DecoderShape,
  precisions: { readonly precision: KvPrecision; readonly packedPrecision: PackedKvPrecision | null },
): GpuPages | null {
  const isOnGpu = gpuKvLayers(split, shape);
  if (!isOnGpu.includes(true)) return null;
  const { precision, packedPrecision } = precisions;
  const shares = [precision, ...(packedPrecision === null ? [] : [packedPrecision])].map(
    (kind) => kvPageBytes(shape, kind, isOnGpu) / kvPageBytes(shape, kind),
  );
  const exact = Math.max(...shares) * PACKED_UNIT_BYTES;
  return { unitBytes: Math.ceil(exact / WORD_BYTES) * WORD_BYTES, isOnGpu };
}

/** Bytes on the GPU of this many bytes of pages. */
export const gpuPageBytes = ({ unitBytes }: GpuPages, pageBytes: number): number =>
  (pageBytes / PACKED_UNIT_BYTES) * unitBytes;
