import { RuvLLMError } from '../core/errors.ts';
import type { Offset } from '../kernels/contract.ts';
import { attend, attendShared, type AttentionRule } from './decoder-blocks.ts';
import type { BlockInput } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { AttentionWeights } from './decoder-weights.ts';
import type { DecoderShape, LayerSizes } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/** The source of a layer's keys and values. */
export interface KeySource {
  /** The layer whose pages it reads. */
  readonly kvLayer: number;
  /** Whether that is an earlier layer. */
  readonly isShared: boolean;
}

/** The first layers have keys of their own; each of the others uses those of the last of them of the same kind, because keys are rotated for their kind. */
export function readKeySources(
  { architecture, numLayers, numKvLayers }: DecoderShape,
  windowed: readonly boolean[],
): readonly KeySource[] {
  return Array.from({ length: numLayers }, (_, layer) => {
    const isShared = layer >= numKvLayers;
    const kvLayer = isShared ? windowed.lastIndexOf(windowed[layer]!, numKvLayers - 1) : layer;
    if (kvLayer !== -1) return { kvLayer, isShared };
    const kind = windowed[layer] ? 'with a window' : 'without a window';
    throw new RuvLLMError(
      'invalid_model_file',
      `${architecture}: layer ${layer} shares keys and values, but none of the first ${numKvLayers} layers is one ${kind}`,
      { data: { layer, numKvLayers } },
    );
  });
}

export interface SharingAttention {
  /** attended = attention over the input. */
  readonly attend: (step: DecoderStep, input: BlockInput) => void;
  readonly output: Projection;
}

interface SharingRule extends KeySource {
  readonly attention: AttentionRule & { readonly rope: number };
  readonly epsilon: number;
}

/** Attention with normalized heads and values, over keys and values of its own or of an earlier layer, whose file may still have unused matrices. */
export function readSharingAttention(
  loader: WeightLoader,
  layer: number,
  { embeddingDim, numHeads, numKvHeads, headDim, hasNoValues = false }: DecoderShape & Partial<LayerSizes>,
  { attention, kvLayer, isShared, epsilon }: SharingRule,
): SharingAttention {
  const name = (part: string): string => `blk.${layer}.attn_${part}`;
  const headNorm = (part: string): Offset => loader.vector(`${name(part)}.weight`, headDim);
  const queries = (): Projection => loader.projection(name('q'), numHeads * headDim, embeddingDim);
  const keys = (part: string): Projection => loader.projection(name(part), numKvHeads * headDim, embeddingDim);
  const output = (): Projection => loader.projection(name('output'), embeddingDim, numHeads * headDim);
  if (isShared) {
    const weights = { q: queries(), qNorm: headNorm('q_norm') };
    return {
      output: output(),
      attend: (step, input) => attendShared(step, kvLayer, input, weights, attention, epsilon),
    };
  }
  const weights: AttentionWeights = {
    q: queries(),
    k: keys('k'),
    v: hasNoValues ? null : keys('v'),
    output: output(),
    qNorm: headNorm('q_norm'),
    kNorm: headNorm('k_norm'),
    vNorm: loader.ones(headDim),
    sinks: null,
  };
  return {
    output: weights.output,
    attend: (step, input) => attend(step, kvLayer, input, weights, attention, { over: 'each', epsilon }),
  };
}
