import type { MetadataEntry } from '../../src/gguf/index.ts';
import type { RandomShape, TensorMaker, Traits } from './random-model.ts';

/** Architectures with recurrent layers beside attention. */
export type HybridArchitecture = 'lfm2' | 'lfm2moe' | 'granitehybrid' | 'falcon-h1';

const CONV_WIDTH = 3;

/** Layer 0 is recurrent, and attention comes both before and after such a layer. */
const isRecurrent = (layer: number): boolean => layer % 3 !== 1;

const lfm2Traits = (architecture: string, { numLayers, numKvHeads, embeddingDim: dim }: RandomShape): Traits => ({
  metadata: [
    { key: `${architecture}.rope.freq_base`, type: 'f32', value: 1e6 },
    { key: `${architecture}.shortconv.l_cache`, type: 'u32', value: CONV_WIDTH },
    kvHeads(architecture, numLayers, numKvHeads),
  ],
  headNorms: 'each',
  isTied: true,
  adjust(make) {
    make.rename('output_norm.weight', 'token_embd_norm.weight');
    for (let layer = 0; layer < numLayers; layer++) if (isRecurrent(layer)) putConv(make, `blk.${layer}`, dim);
  },
});

export const hybridTraits: Record<HybridArchitecture, (shape: RandomShape) => Traits> = {
  lfm2: (shape) => lfm2Traits('lfm2', shape),
  lfm2moe: (shape) => lfm2Traits('lfm2moe', shape),
  granitehybrid: ({ numLayers, numKvHeads, embeddingDim: dim, headDim }) => {
    const key = (name: string): string => `granitehybrid.${name}`;
    const mamba = { heads: 8, inner: 2 * dim, state: 16, width: 4 };
    return {
      metadata: [
        kvHeads('granitehybrid', numLayers, numKvHeads),
        { key: key('embedding_scale'), type: 'f32', value: 3 },
        { key: key('residual_scale'), type: 'f32', value: 0.4 },
        { key: key('attention.scale'), type: 'f32', value: 1.7 / headDim },
        { key: key('logit_scale'), type: 'f32', value: 0.5 },
        { key: key('rope.scaling.finetuned'), type: 'bool', value: false },
        ...ssmKeys('granitehybrid', mamba),
      ],
      isTied: true,
      adjust(make) {
        for (let layer = 0; layer < numLayers; layer++) {
          if (!isRecurrent(layer)) continue;
          removeAttention(make, `blk.${layer}`);
          putMamba(make, `blk.${layer}`, dim, mamba);
        }
      },
    };
  },
  // Every layer has both kinds of mixers.
  'falcon-h1': ({ numLayers, embeddingDim: dim, headDim }) => {
    const mamba = { heads: 8, inner: dim + (dim >= 256 ? 256 : 32), state: 16, width: 4, groups: 2 };
    return {
      metadata: [
        { key: 'falcon-h1.rope.freq_base', type: 'f32', value: 1e11 },
        { key: 'falcon-h1.attention.key_length', type: 'u32', value: headDim },
        { key: 'falcon-h1.attention.value_length', type: 'u32', value: headDim },
        ...ssmKeys('falcon-h1', mamba),
      ],
      adjust(make) {
        for (let layer = 0; layer < numLayers; layer++) {
          putMamba(make, `blk.${layer}`, dim, mamba);
          make.rename(`blk.${layer}.ffn_norm.weight`, `blk.${layer}.ffn_norm`);
        }
      },
    };
  },
};

/** Keys of the state space layers. */
const ssmKeys = (architecture: string, { heads, inner, state, width, groups = 1 }: MambaShape): MetadataEntry[] =>
  Object.entries({
    conv_kernel: width,
    inner_size: inner,
    state_size: state,
    time_step_rank: heads,
    group_count: groups,
  }).map(([name, value]) => ({ key: `${architecture}.ssm.${name}`, type: 'u32', value }));

const kvHeads = (architecture: string, numLayers: number, numKvHeads: number): MetadataEntry => ({
  key: `${architecture}.attention.head_count_kv`,
  type: 'array<i32>',
  value: Int32Array.from({ length: numLayers }, (_, layer) => (isRecurrent(layer) ? 0 : numKvHeads)),
});

function removeAttention(make: TensorMaker, block: string): void {
  for (const name of ['q', 'k', 'v', 'output', 'q_norm', 'k_norm']) make.remove(`${block}.attn_${name}.weight`);
}

interface MambaShape {
  readonly heads: number;
  readonly inner: number;
  readonly state: number;
  readonly width: number;
  /** Default 1. */
  readonly groups?: number;
}

function putMamba(make: TensorMaker, block: string, dim: number, shape: MambaShape): void {
  const { heads, inner, state, width, groups = 1 } = shape;
  const mixed = inner + 2 * groups * state;
  make.matrix(`${block}.ssm_in.weight`, inner + mixed + heads, dim);
  make.floats(`${block}.ssm_conv1d.weight`, [width, mixed], 0.5);
  make.floats(`${block}.ssm_conv1d.bias`, [mixed], 0.2);
  make.floats(`${block}.ssm_dt.bias`, [heads], 0.5);
  make.floats(`${block}.ssm_a`, [1, heads], 0.3, -0.8);
  make.floats(`${block}.ssm_d`, [1, heads], 0.5);
  make.floats(`${block}.ssm_norm.weight`, [inner / groups, groups], 0.2, 1);
  make.matrix(`${block}.ssm_out.weight`, dim, inner);
}

function putConv(make: TensorMaker, block: string, dim: number): void {
  removeAttention(make, block);
  make.matrix(`${block}.shortconv.in_proj.weight`, 3 * dim, dim, 1.2 / Math.sqrt(dim));
  make.matrix(`${block}.shortconv.out_proj.weight`, dim, dim);
  make.floats(`${block}.shortconv.conv.weight`, [CONV_WIDTH, dim], 0.6);
}
