import type { MetadataEntry } from '../../src/gguf/index.ts';
import type { RandomShape, Traits } from './random-model.ts';

/** Architectures with multi-head latent attention. */
export type LatentArchitecture = 'deepseek2';

/** Rotated and other values of a key, values of a head, and the ranks. */
interface LatentSizes {
  readonly rotary: number;
  readonly plain: number;
  readonly value: number;
  readonly rank: number;
  readonly queryRank: number;
}

/** Wide enough for blocks of 256, if the model is. */
const sizesOf = ({ embeddingDim }: RandomShape): LatentSizes =>
  embeddingDim >= 256
    ? { rotary: 32, plain: 256, value: 64, rank: 256, queryRank: 256 }
    : { rotary: 16, plain: 32, value: 32, rank: 64, queryRank: 64 };

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const string = (key: string, value: string): MetadataEntry => ({ key, type: 'string', value });

export const latentTraits: Record<LatentArchitecture, (shape: RandomShape) => Traits> = {
  deepseek2: (shape) => {
    const { numHeads, numLayers, embeddingDim: dim, isLite = false, isStacked = false } = shape;
    const { rotary, plain, value, rank, queryRank } = sizesOf(shape);
    const key = (name: string): string => `deepseek2.${name}`;
    const ofHeads = [
      u32(key('attention.key_length_mla'), plain + rotary),
      u32(key('attention.value_length_mla'), value),
    ];
    return {
      metadata: [
        u32(key('attention.head_count_kv'), isStacked ? numHeads : 1),
        u32(key('attention.key_length'), isStacked ? plain + rotary : rank + rotary),
        u32(key('attention.value_length'), isStacked ? value : rank),
        ...(isStacked ? [] : ofHeads),
        u32(key('attention.kv_lora_rank'), rank),
        ...(isLite ? [] : [u32(key('attention.q_lora_rank'), queryRank)]),
        u32(key('rope.dimension_count'), rotary),
        f32(key('rope.freq_base'), 10000),
        string(key('rope.scaling.type'), 'yarn'),
        f32(key('rope.scaling.factor'), 4),
        u32(key('rope.scaling.original_context_length'), 64),
        f32(key('rope.scaling.yarn_log_multiplier'), isLite ? 0.0707 : 0.1),
      ],
      adjust(make) {
        for (let layer = 0; layer < numLayers; layer++) {
          const name = (part: string): string => `blk.${layer}.attn_${part}.weight`;
          for (const part of ['q', 'k', 'v', 'output']) make.remove(name(part));
          const queryRows = numHeads * (plain + rotary);
          if (isLite) make.matrix(name('q'), queryRows, dim, 1.2 / Math.sqrt(dim));
          else {
            make.matrix(name('q_a'), queryRank, dim);
            make.floats(name('q_a_norm'), [queryRank], 0.2, 1);
            make.matrix(name('q_b'), queryRows, queryRank, 1.2 / Math.sqrt(queryRank));
          }
          make.matrix(name('kv_a_mqa'), rank + rotary, dim, 1.2 / Math.sqrt(dim));
          make.floats(name('kv_a_norm'), [rank], 0.2, 1);
          if (isStacked) make.matrix(name('kv_b'), numHeads * (plain + value), rank);
          else {
            make.stack(name('k_b'), [plain, rank, numHeads]);
            make.stack(name('v_b'), [rank, value, numHeads]);
          }
          make.matrix(name('output'), dim, numHeads * value);
        }
      },
    };
  },
};
