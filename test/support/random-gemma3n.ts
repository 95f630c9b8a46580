import type { MetadataEntry } from '../../src/gguf/index.ts';
import type { RandomShape, Traits } from './random-model.ts';

export type StreamedArchitecture = 'gemma3n';

/** llama.cpp has these numbers in its code, not in files. */
const NUM_STREAMS = 4;
const LAYER_INPUT_DIM = 256;
const LAUREL_RANK = 64;
const NUM_KV_LAYERS = 20;

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });

/** Quantizers leave the matrices of streams and of the low-rank residual alone, so these are F32 in every file. */
export const streamedTraits: Record<StreamedArchitecture, (shape: RandomShape) => Traits> = {
  gemma3n: ({ numLayers, embeddingDim: dim, headDim, vocabSize }) => ({
    metadata: [
      u32('gemma3n.attention.key_length', headDim),
      u32('gemma3n.attention.value_length', headDim),
      u32('gemma3n.attention.sliding_window', 8),
      u32('gemma3n.attention.shared_kv_layers', Math.max(0, numLayers - NUM_KV_LAYERS)),
      f32('gemma3n.rope.freq_base', 1e6),
      u32('gemma3n.altup.active_idx', 0),
      u32('gemma3n.altup.num_inputs', NUM_STREAMS),
      u32('gemma3n.embedding_length_per_layer_input', LAYER_INPUT_DIM),
    ],
    headNorms: 'each',
    hasPostNorms: true,
    isTied: true,
    adjust(make) {
      const inputs = numLayers * LAYER_INPUT_DIM;
      make.matrix('per_layer_token_embd.weight', vocabSize, inputs, 0.06);
      make.floats('per_layer_model_proj.weight', [dim, inputs], 0.6 / Math.sqrt(dim));
      make.floats('per_layer_proj_norm.weight', [LAYER_INPUT_DIM], 0.2, 1);
      make.floats('altup_proj.weight', [dim, dim, NUM_STREAMS - 1], 1 / Math.sqrt(dim));
      make.floats('altup_unembd_proj.weight', [dim, dim, NUM_STREAMS - 1], 1 / Math.sqrt(dim));
      for (let layer = 0; layer < numLayers; layer++) {
        const name = (part: string): string => `blk.${layer}.${part}.weight`;
        // Scores are not divided by the root of the head's size. With larger ones a layer would multiply every rounding error.
        make.floats(name('attn_q_norm'), [headDim], 0.1, 2 / Math.sqrt(headDim));
        make.floats(name('attn_k_norm'), [headDim], 0.1, 0.5);
        make.floats(name('post_attention_norm'), [dim], 0.1, 0.3);
        make.floats(name('post_ffw_norm'), [dim], 0.05, 0.15);
        make.matrix(name('inp_gate'), LAYER_INPUT_DIM, dim);
        make.matrix(name('proj'), dim, LAYER_INPUT_DIM);
        make.floats(name('post_norm'), [dim], 0.05, 0.15);
        // Large, because the router's input is divided by the width.
        make.floats(name('altup_router'), [dim, NUM_STREAMS], 1.5 * Math.sqrt(dim));
        make.floats(name('altup_router_norm'), [dim], 0.2, 1);
        make.floats(name('altup_predict_coef'), [NUM_STREAMS, NUM_STREAMS * NUM_STREAMS], 0.1);
        make.floats(name('altup_correct_coef'), [NUM_STREAMS, NUM_STREAMS], 0.2);
        make.floats(name('altup_correct_scale'), [dim], 0.2, 1);
        make.floats(name('laurel_l'), [dim, LAUREL_RANK], 0.6 / Math.sqrt(dim));
        make.floats(name('laurel_r'), [LAUREL_RANK, dim], 0.6 / Math.sqrt(LAUREL_RANK));
        make.floats(name('laurel_post_norm'), [dim], 0.1, 0.3);
      }
    },
  }),
};
