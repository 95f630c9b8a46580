import {
  ARENA_ALIGNMENT,
  kvLayerBytes,
  type KvPrecision,
  type KvRegion,
  type Offset,
  type PackedKvPrecision,
} from '../kernels/contract.ts';
import type { DecoderShape, KvMemory, LayerSizes } from './types.ts';

/** Packed pages may start at every cache line: their size is a whole number of lines. */
export const PACKED_UNIT_BYTES = ARENA_ALIGNMENT;

/** Page ids are int32, which limits the region in units of `PACKED_UNIT_BYTES`. */
export const MAX_PACKED_REGION_BYTES = 2 ** 31 * PACKED_UNIT_BYTES;

type KvShape = Pick<DecoderShape, 'numKvLayers' | 'numKvHeads' | 'headDim' | 'layerSizes'>;
type KvHeads = Pick<LayerSizes, 'numKvHeads' | 'headDim'>;

/** The place of a layer's keys and values: its number in the regions of all layers with the same heads. */
export interface KvLayer {
  readonly kv: KvRegion;
  /** The same memory, for negative entries of page tables; null: no packed pages. */
  readonly packed: KvRegion | null;
  readonly layer: number;
}

/** Layers with the same heads. They lie together in a page, so that one operation packs all of them. */
export interface KvGroup {
  readonly kv: KvRegion;
  readonly packed: KvRegion | null;
  readonly numLayers: number;
}

/** The heads of each layer with keys and values. Layers of different sizes are not recurrent, so those that share keys are the last. */
export function kvHeadsOf({ layerSizes, numKvLayers, numKvHeads, headDim }: KvShape): readonly KvHeads[] {
  return layerSizes?.slice(0, numKvLayers) ?? Array.from({ length: numKvLayers }, () => ({ numKvHeads, headDim }));
}

/** Bytes of K and V of `PAGE_TOKENS` tokens in all layers with attention, or only in those included. */
export function kvPageBytes(shape: KvShape, precision: KvPrecision, isIncluded?: readonly boolean[]): number {
  return kvHeadsOf(shape).reduce(
    (sum, { numKvHeads, headDim }, i) =>
      isIncluded?.[i] === false ? sum : sum + kvLayerBytes(numKvHeads, headDim, precision),
    0,
  );
}

/** The number of pages within a budget; 0 if not even one fits. */
export function numPagesWithin(budgetBytes: number, shape: KvShape, precision: KvPrecision = 'f16'): number {
  return Math.floor(budgetBytes / kvPageBytes(shape, precision));
}

/** The groups of a page in their order, and the place of each layer. */
export function placeKvLayers(shape: KvShape, memory: KvMemory, options: KvPlacement): PlacedKvLayers {
  const { gpu } = options;
  if (gpu == null) return placeOnSide(shape, memory, PACKED_UNIT_BYTES, options);
  const rest = placeOnSide(shape, memory, PACKED_UNIT_BYTES, { ...options, isIncluded: gpu.isOnGpu.map((is) => !is) });
  const pageBytes = (memory.pageBytes / PACKED_UNIT_BYTES) * gpu.unitBytes;
  const gpuMemory = { base: gpu.base, pageBytes, numPages: memory.numPages };
  const onGpu = placeOnSide(shape, gpuMemory, gpu.unitBytes, { ...options, isIncluded: gpu.isOnGpu });
  return {
    groups: [...rest.groups, ...onGpu.groups],
    layers: gpu.isOnGpu.map((is, layer) => (is ? onGpu : rest).layers[layer]!),
  };
}

interface KvPlacement {
  readonly precision: KvPrecision;
  readonly packedPrecision: PackedKvPrecision | null;
  /** Pages of some layers in other memory, in which each packed unit has `unitBytes`; default: none. */
  readonly gpu?: { readonly base: Offset; readonly unitBytes: number; readonly isOnGpu: readonly boolean[] } | null;
}

export interface PlacedKvLayers {
  readonly groups: readonly KvGroup[];
  readonly layers: readonly KvLayer[];
}

function placeOnSide(
  shape: KvShape,
  memory: KvMemory,
  unitBytes: number,
  { precision, packedPrecision, isIncluded }: KvPlacement & { readonly isIncluded?: readonly boolean[] },
): PlacedKvLayers {
  const kinds = groupLayers(shape, isIncluded);
  const units = {
    base: memory.base,
    pageBytes: unitBytes,
    numPages: (memory.numPages * memory.pageBytes) / unitBytes,
  };
  const float = placeRegions(kinds, memory, precision);
  const packed = packedPrecision === null ? null : placeRegions(kinds, units, packedPrecision);
  const groups = kinds.map(({ layers }, i) => ({
    kv: float[i]!,
    packed: packed?.[i] ?? null,
    numLayers: layers.length,
  }));
  const places: KvLayer[] = [];
  for (const [i, { layers }] of kinds.entries()) {
    const { kv, packed: packedRegion } = groups[i]!;
    for (const [layer, number] of layers.entries()) places[number] = { kv, packed: packedRegion, layer };
  }
  return { groups, layers: places };
}

/** The first packed page id that would end beyond the memory. */
export function endOfPackedPages(shape: KvShape, { pageBytes, numPages }: KvMemory, precision: KvPrecision): number {
  return (numPages * pageBytes - kvPageBytes(shape, precision)) / PACKED_UNIT_BYTES + 1;
}

interface LayersOfKind extends KvHeads {
  readonly layers: readonly number[];
}

function groupLayers(shape: KvShape, isIncluded?: readonly boolean[]): readonly LayersOfKind[] {
  const kinds = new Map<string, KvHeads & { layers: number[] }>();
  for (const [layer, { numKvHeads, headDim }] of kvHeadsOf(shape).entries()) {
    if (isIncluded?.[layer] === false) continue;
    const key = `${numKvHeads} x ${headDim}`;
    if (!kinds.has(key)) kinds.set(key, { numKvHeads, headDim, layers: [] });
    kinds.get(key)!.layers.push(layer);
  }
  return [...kinds.values()];
}

function placeRegions(kinds: readonly LayersOfKind[], memory: KvMemory, precision: KvPrecision): readonly KvRegion[] {
  let { base } = memory;
  return kinds.map(({ numKvHeads, headDim, layers }) => {
    const layerBytes = kvLayerBytes(numKvHeads, headDim, precision);
    const region = { ...memory, base, layerBytes, numKvHeads, headDim, precision };
    base += layers.length * layerBytes;
    return region;
  });
}
