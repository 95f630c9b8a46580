import type { MetadataEntry } from '../../src/gguf/index.ts';
import type { RandomShape, Traits } from './random-model.ts';

/** Decoders whose blocks differ more from Llama's. */
export type DenseArchitecture =
  'gemma' | 'smollm3' | 'olmo2' | 'granite' | 'granitemoe' | 'glm4' | 'phi2' | 'starcoder2' | 'command-r' | 'cohere2';

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const string = (key: string, value: string): MetadataEntry => ({ key, type: 'string', value });

const biased = { hasBiases: true, hasMoreBiases: true, hasNormBiases: true, isGateless: true };

const graniteTraits = (architecture: string, headDim: number): Traits => ({
  metadata: [
    f32(`${architecture}.embedding_scale`, 3),
    f32(`${architecture}.residual_scale`, 0.4),
    f32(`${architecture}.attention.scale`, 1.7 / headDim),
    f32(`${architecture}.logit_scale`, 0.5),
  ],
  isTied: true,
});

export const denseTraits: Record<DenseArchitecture, (shape: RandomShape) => Traits> = {
  gemma: ({ headDim }) => ({
    metadata: [u32('gemma.attention.key_length', headDim), u32('gemma.attention.value_length', headDim)],
    isTied: true,
  }),
  smollm3: () => ({ metadata: [f32('smollm3.rope.freq_base', 5e6)], isTied: true }),
  olmo2: () => ({
    // OLMo 3's rotations: stretched in the layers without a window.
    metadata: [
      u32('olmo2.attention.sliding_window', 8),
      f32('olmo2.rope.freq_base', 5e5),
      string('olmo2.rope.scaling.type', 'yarn'),
      f32('olmo2.rope.scaling.factor', 8),
      u32('olmo2.rope.scaling.original_context_length', 64),
    ],
    headNorms: 'together',
    inputNorms: 'none',
    hasPostNorms: true,
  }),
  granite: ({ headDim }) => graniteTraits('granite', headDim),
  granitemoe: ({ headDim }) => graniteTraits('granitemoe', headDim),
  glm4: ({ headDim }) => ({
    metadata: [u32('glm4.rope.dimension_count', headDim / 2)],
    hasBiases: true,
    hasPostNorms: true,
    isFused: 'gate',
  }),
  phi2: ({ headDim }) => ({
    metadata: [u32('phi2.rope.dimension_count', headDim / 2), f32('phi2.attention.layer_norm_epsilon', 1e-5)],
    inputNorms: 'attention',
    ...biased,
  }),
  starcoder2: () => ({
    metadata: [f32('starcoder2.rope.freq_base', 1e5), f32('starcoder2.attention.layer_norm_epsilon', 1e-5)],
    isTied: true,
    ...biased,
  }),
  'command-r': () => ({
    metadata: [f32('command-r.logit_scale', 0.7), f32('command-r.attention.layer_norm_epsilon', 1e-5)],
    inputNorms: 'attention',
    isTied: true,
  }),
  cohere2: () => ({
    metadata: [
      f32('cohere2.logit_scale', 0.6),
      f32('cohere2.attention.layer_norm_epsilon', 1e-5),
      u32('cohere2.attention.sliding_window', 8),
    ],
    inputNorms: 'attention',
    isTied: true,
  }),
};
