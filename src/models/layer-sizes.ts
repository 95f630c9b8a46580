import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, Metadata } from '../gguf/index.ts';
import { readWindowedLayers } from './metadata-keys.ts';
import { readCount } from './read-count.ts';
import type { DecoderShape, LayerSizes } from './types.ts';

/** Limits of the numbers, and defaults of missing keys; undefined: the key is required. */
export interface SizeRules {
  readonly maxHeads: number;
  readonly maxHeadDim: number;
  readonly maxDim: number;
  readonly defaultHeadDim: number;
  readonly defaultFeedForwardDim: number | undefined;
}

/**
 * The sizes of each layer, if the file lists different numbers, or a separate head size for layers with a window. Null:
 * all layers are equal, or the list says which layers are recurrent.
 */
export function readLayerSizes(
  gguf: GgufFile,
  shape: Pick<DecoderShape, 'architecture' | 'numLayers' | 'numHeads'>,
  rules: SizeRules,
): readonly LayerSizes[] | null {
  const { metadata } = gguf;
  const { architecture, numLayers, numHeads } = shape;
  const key = (name: string): string => `${architecture}.${name}`;
  const kvKey = key('attention.head_count_kv');
  const feedForwardKey = key('feed_forward_length');
  const windowKey = key('attention.key_length_swa');
  const hasWindowSize = metadata.get(windowKey) !== undefined;
  if (listOf(metadata, kvKey).includes(0)) return null;
  if (!hasWindowSize && !isMixed(metadata, kvKey) && !isMixed(metadata, feedForwardKey)) return null;
  const headDim = readCount(metadata, key('attention.key_length'), rules.maxHeadDim, rules.defaultHeadDim);
  const windowDim = hasWindowSize ? readCount(metadata, windowKey, rules.maxHeadDim) : headDim;
  checkValueSize(metadata, key('attention.value_length_swa'), windowDim);
  const windowed = hasWindowSize ? readWindowedLayers({ gguf, shape }) : [];
  const kvHeads = readCounts(metadata, kvKey, { numLayers, max: rules.maxHeads, defaultValue: numHeads });
  const feedForwardDims = readCounts(metadata, feedForwardKey, {
    numLayers,
    max: rules.maxDim,
    defaultValue: rules.defaultFeedForwardDim,
  });
  const sizes = Array.from({ length: numLayers }, (_, layer) => ({
    numKvHeads: kvHeads[layer]!,
    headDim: windowed[layer] === true ? windowDim : headDim,
    feedForwardDim: feedForwardDims[layer]!,
    ...(isWithoutValues(gguf, layer) ? { hasNoValues: true } : {}),
  }));
  for (const [layer, size] of sizes.entries()) checkHeads(architecture, numHeads, layer, size);
  return sizes;
}

/** The largest size of any layer. */
export const largestOf = (sizes: readonly LayerSizes[], of: (size: LayerSizes) => number): number =>
  Math.max(...sizes.map(of));

const listOf = (metadata: Metadata, key: string): readonly number[] =>
  ArrayBuffer.isView(metadata.get(key)) ? Array.from(metadata.numbers(key)) : [];

const isMixed = (metadata: Metadata, key: string): boolean => new Set(listOf(metadata, key)).size > 1;

/** Values are then the keys before their norm and rotation. */
const isWithoutValues = ({ tensors }: GgufFile, layer: number): boolean =>
  tensors.has(`blk.${layer}.attn_k.weight`) && !tensors.has(`blk.${layer}.attn_v.weight`);

/** One number per layer; a single number is for all. */
function readCounts(
  metadata: Metadata,
  key: string,
  {
    numLayers,
    max,
    defaultValue,
  }: { readonly numLayers: number; readonly max: number; readonly defaultValue: number | undefined },
): readonly number[] {
  const listed = listOf(metadata, key);
  if (listed.length === 0) {
    const count = readCount(metadata, key, max, defaultValue);
    return Array.from({ length: numLayers }, () => count);
  }
  const bad = listed.find((count) => !Number.isSafeInteger(count) || count < 1 || count > max);
  if (listed.length >= numLayers && bad === undefined) return listed.slice(0, numLayers);
  const problem =
    bad === undefined
      ? `lists ${listed.length} numbers, the model has ${numLayers} layers`
      : `lists ${bad}, must be from 1 to ${max}`;
  throw new RuvLLMError('invalid_model_file', `metadata key "${key}" ${problem}`, {
    data: { key, numListed: listed.length, numLayers },
  });
}

function checkValueSize(metadata: Metadata, key: string, headDim: number): void {
  const valueDim = metadata.number(key, headDim);
  if (valueDim === headDim) return;
  throw new RuvLLMError(
    'unsupported',
    `metadata key "${key}" is ${valueDim}, but keys of layers with a window have ${headDim} values; both must be equal`,
    { data: { key, value: valueDim, keyLength: headDim } },
  );
}

function checkHeads(
  architecture: string,
  numHeads: number,
  layer: number,
  { numKvHeads, headDim }: Pick<LayerSizes, 'numKvHeads' | 'headDim'>,
): void {
  if (numHeads % numKvHeads === 0 && headDim % 2 === 0) return;
  throw new RuvLLMError(
    'invalid_model_file',
    `${architecture}: layer ${layer} has ${numHeads} heads of ${headDim} over ${numKvHeads} key/value heads, which do not divide evenly`,
    { data: { layer, numHeads, numKvHeads, headDim } },
  );
}
