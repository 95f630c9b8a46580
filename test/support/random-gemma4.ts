import type { MetadataEntry } from '../../src/gguf/index.ts';
import type { RandomShape, TensorMaker, Traits } from './random-model.ts';

export type MixedHeadsArchitecture = 'gemma4';

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const list = (key: string, value: readonly number[]): MetadataEntry => ({
  key,
  type: 'array<i32>',
  value: Int32Array.from(value),
});

/** Every third layer has no window, but larger heads, and half of the key/value heads. */
const isWindowed = (layer: number): boolean => layer % 3 !== 2;
const NUM_SHARED = 3;

/** The shape's sizes are those of layers with a window. */
function sizesOf({ numLayers, numKvHeads, headDim, feedForwardDim }: RandomShape) {
  const numShared = numLayers > 2 * NUM_SHARED ? NUM_SHARED : 0;
  const layers = Array.from({ length: numLayers }, (_, layer) => ({
    isWindowed: isWindowed(layer),
    headDim: isWindowed(layer) ? headDim : 2 * headDim,
    numKvHeads: isWindowed(layer) ? numKvHeads : Math.max(1, numKvHeads / 2),
    // Layers that share keys are twice as wide.
    feedForwardDim: layer < numLayers - numShared ? feedForwardDim : 2 * feedForwardDim,
    // Values are the keys in the first layer without a window.
    hasNoValues: layer === 2,
  }));
  return { layers, numShared };
}

export const mixedHeadsTraits: Record<MixedHeadsArchitecture, (shape: RandomShape) => Traits> = {
  gemma4: (shape) => {
    const { embeddingDim: dim, numHeads, headDim, numLayers, vocabSize, experts } = shape;
    const { layers, numShared } = sizesOf(shape);
    // Large models and mixtures have no inputs of layers.
    const inputDim = experts === undefined ? (dim % 256 === 0 ? 256 : 32) : 0;
    return {
      metadata: [
        u32('gemma4.attention.key_length', 2 * headDim),
        u32('gemma4.attention.value_length', 2 * headDim),
        u32('gemma4.attention.key_length_swa', headDim),
        u32('gemma4.attention.value_length_swa', headDim),
        list(
          'gemma4.attention.head_count_kv',
          layers.map((layer) => layer.numKvHeads),
        ),
        list(
          'gemma4.feed_forward_length',
          layers.map((layer) => layer.feedForwardDim),
        ),
        u32('gemma4.attention.sliding_window', 8),
        {
          key: 'gemma4.attention.sliding_window_pattern',
          type: 'array<bool>',
          value: layers.map((layer) => layer.isWindowed),
        },
        u32('gemma4.attention.shared_kv_layers', numShared),
        u32('gemma4.rope.dimension_count', 2 * headDim),
        u32('gemma4.rope.dimension_count_swa', headDim),
        f32('gemma4.rope.freq_base', 1e6),
        f32('gemma4.rope.freq_base_swa', 10000),
        f32('gemma4.final_logit_softcapping', 12),
        u32('gemma4.embedding_length_per_layer_input', inputDim),
      ],
      // A quarter of the values is rotated, as in published models.
      vectors: { 'rope_freqs.weight': Float32Array.from({ length: headDim }, (_, i) => (i < headDim / 4 ? 1 : 1e30)) },
      headNorms: 'each',
      hasPostNorms: true,
      adjust(make) {
        // Multiplied by the root of the width, so that the layers would hardly change larger ones.
        make.matrix('token_embd.weight', vocabSize, dim, 0.07);
        if (inputDim > 0) {
          make.matrix('per_layer_token_embd.weight', vocabSize, numLayers * inputDim, 0.06);
          make.floats('per_layer_model_proj.weight', [dim, numLayers * inputDim], 0.6 / Math.sqrt(dim));
          make.floats('per_layer_proj_norm.weight', [inputDim], 0.2, 1);
        }
        for (const [layer, size] of layers.entries()) {
          const name = (part: string): string => `blk.${layer}.${part}.weight`;
          const [qRows, kvRows] = [numHeads * size.headDim, size.numKvHeads * size.headDim];
          make.matrix(name('attn_q'), qRows, dim, 1.2 / Math.sqrt(dim));
          make.matrix(name('attn_k'), kvRows, dim, 1.2 / Math.sqrt(dim));
          make.matrix(name('attn_v'), kvRows, dim);
          if (size.hasNoValues) make.remove(name('attn_v'));
          make.matrix(name('attn_output'), dim, qRows);
          // Scores are not divided by the root of the head's size. With larger ones a layer would multiply every rounding error.
          make.floats(name('attn_q_norm'), [size.headDim], 0.1, 2 / Math.sqrt(size.headDim));
          make.floats(name('attn_k_norm'), [size.headDim], 0.1, 0.5);
          make.floats(name('post_attention_norm'), [dim], 0.2, 0.5);
          make.floats(name('post_ffw_norm'), [dim], 0.03, 0.1);
          make.matrix(name('ffn_gate'), size.feedForwardDim, dim);
          make.matrix(name('ffn_up'), size.feedForwardDim, dim);
          make.matrix(name('ffn_down'), dim, size.feedForwardDim);
          make.floats(name('layer_output_scale'), [1], 0.1, 0.9);
          if (experts !== undefined) adjustExperts(make, layer, dim, experts);
          if (inputDim === 0) continue;
          make.matrix(name('inp_gate'), inputDim, dim);
          make.matrix(name('proj'), dim, inputDim);
          make.floats(name('post_norm'), [dim], 0.03, 0.1);
        }
      },
    };
  },
};

/** Experts beside the dense layer: gate and up in one matrix, a scale of each expert and of the router's input. */
function adjustExperts(
  make: TensorMaker,
  layer: number,
  dim: number,
  { numExperts, feedForwardDim }: NonNullable<RandomShape['experts']>,
): void {
  const name = (part: string): string => `blk.${layer}.${part}`;
  make.remove(name('ffn_gate_exps.weight'));
  make.remove(name('ffn_up_exps.weight'));
  make.stack(name('ffn_gate_up_exps.weight'), [dim, 2 * feedForwardDim, numExperts]);
  make.floats(name('ffn_down_exps.scale'), [numExperts], 0.2, 1);
  // Large, because the router's input is divided by the root of the width.
  make.floats(name('ffn_gate_inp.scale'), [dim], 0.2 * Math.sqrt(dim), Math.sqrt(dim));
  for (const part of ['pre_ffw_norm_2', 'post_ffw_norm_1', 'post_ffw_norm_2']) {
    make.floats(name(`${part}.weight`), [dim], 0.1, 1);
  }
}
