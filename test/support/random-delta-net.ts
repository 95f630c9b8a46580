import type { MetadataEntry } from '../../src/gguf/index.ts';
import type { RandomShape, TensorMaker, Traits } from './random-model.ts';

/** Architectures with gated delta nets beside gated attention. */
export type DeltaNetArchitecture = 'qwen3next' | 'qwen35' | 'qwen35moe';

/** Attention comes before and after a delta net. */
const INTERVAL = 2;
const NET = { heads: 4, keyHeads: 2, width: 4 };

const traitsOf =
  (architecture: DeltaNetArchitecture) =>
  ({ numLayers, numHeads, embeddingDim: dim, headDim, isStacked = false }: RandomShape): Traits => {
    const u32 = (name: string, value: number): MetadataEntry => ({
      key: `${architecture}.${name}`,
      type: 'u32',
      value,
    });
    const size = dim >= 256 ? 64 : 32;
    const sections: MetadataEntry = {
      key: `${architecture}.rope.dimension_sections`,
      type: 'array<i32>',
      value: Int32Array.from([headDim / 8, headDim / 16, headDim / 16, 0]),
    };
    return {
      metadata: [
        { key: `${architecture}.rope.freq_base`, type: 'f32', value: 1e7 },
        u32('rope.dimension_count', headDim / 2),
        ...(architecture === 'qwen3next' ? [] : [sections]),
        u32('attention.key_length', headDim),
        u32('attention.value_length', headDim),
        u32('full_attention_interval', INTERVAL),
        u32('ssm.conv_kernel', NET.width),
        u32('ssm.inner_size', NET.heads * size),
        u32('ssm.state_size', size),
        u32('ssm.time_step_rank', NET.heads),
        u32('ssm.group_count', NET.keyHeads),
      ],
      headNorms: 'each',
      adjust(make) {
        for (let layer = 0; layer < numLayers; layer++) {
          const block = `blk.${layer}`;
          make.rename(`${block}.ffn_norm.weight`, `${block}.post_attention_norm.weight`);
          if ((layer + 1) % INTERVAL === 0) {
            make.remove(`${block}.attn_q.weight`);
            make.matrix(`${block}.attn_q.weight`, 2 * numHeads * headDim, dim, 1.2 / Math.sqrt(dim));
          } else putNet(make, block, dim, { size, isStacked, hasTwoSteps: architecture !== 'qwen3next' });
        }
      },
    };
  };

interface NetOptions {
  readonly size: number;
  readonly isStacked: boolean;
  /** Matrices for strengths and step sizes, instead of one for both. */
  readonly hasTwoSteps: boolean;
}

function putNet(make: TensorMaker, block: string, dim: number, { size, isStacked, hasTwoSteps }: NetOptions): void {
  const { heads, keyHeads, width } = NET;
  for (const name of ['q', 'k', 'v', 'output', 'q_norm', 'k_norm']) make.remove(`${block}.attn_${name}.weight`);
  const [mixed, inner] = [(2 * keyHeads + heads) * size, heads * size];
  if (isStacked) make.matrix(`${block}.ssm_in.weight`, mixed + inner, dim);
  else {
    make.matrix(`${block}.attn_qkv.weight`, mixed, dim);
    make.matrix(`${block}.attn_gate.weight`, inner, dim);
  }
  for (const [name, rows] of hasTwoSteps
    ? ([
        ['alpha', heads],
        ['beta', heads],
      ] as const)
    : ([['ba', 2 * heads]] as const))
    // prettier-ignore
    make.matrix(`${block}.ssm_${name}.weight`, rows, dim);
  make.floats(`${block}.ssm_conv1d.weight`, [width, mixed], 0.5);
  make.floats(`${block}.ssm_dt.bias`, [heads], 0.5);
  make.floats(`${block}.ssm_a`, [heads], 0.1, -0.3);
  make.floats(`${block}.ssm_norm.weight`, [size], 0.2, 1);
  make.matrix(`${block}.ssm_out.weight`, dim, inner);
}

export const deltaNetTraits: Record<DeltaNetArchitecture, (shape: RandomShape) => Traits> = {
  qwen3next: traitsOf('qwen3next'),
  qwen35: traitsOf('qwen35'),
  qwen35moe: traitsOf('qwen35moe'),
};
