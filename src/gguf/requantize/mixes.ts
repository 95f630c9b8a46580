import type { TensorTypeName } from '../../core/tensor-type.ts';

/** A tensor's part in a model, as far as mixes treat it differently. */
export type Role =
  'output' | 'token_embd' | 'attn_q' | 'attn_k' | 'attn_v' | 'attn_qkv' | 'attn_output' | 'ffn_down' | 'other';

/** Where a tensor is: its role, and its layer among all. */
export interface Place {
  readonly role: Role;
  readonly layer: number;
  readonly numLayers: number;
  /** Heads per KV head: the more, the smaller and more important attn_v is. */
  readonly headsPerKvHead: number;
}

/** A named quantization: the type of most matrices, and a better one for those where errors hurt most. */
export interface Mix {
  /** `general.file_type` of llama.cpp. */
  readonly fileType: number;
  readonly type: TensorTypeName;
  /** Types of single matrices; null: that of most. */
  readonly better?: (place: Place) => TensorTypeName | null;
  /** Too few bits without an importance matrix. */
  readonly needsImatrix?: boolean;
}

/** The first and last eighth of the layers and every third between. */
const isSensitive = ({ layer, numLayers }: Place): boolean => {
  const eighth = Math.floor(numLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * numLayers) / 8) || (layer - eighth) % 3 === 2;
};
const isFirst = ({ layer, numLayers }: Place, share: number): boolean => layer < Math.floor(numLayers / share);

/** With the output matrix in six bits. */
const withOutput =
  (choose: (place: Place) => TensorTypeName | null) =>
  (place: Place): TensorTypeName | null =>
    place.role === 'output' ? 'Q6_K' : choose(place);
const onlyOutput = withOutput(() => null);

/** Mixes of about two bits and less: the output in five, the tables and the matrices where errors hurt in `careful` or four. */
const lowBits =
  (careful: TensorTypeName, table: TensorTypeName, attentionOutput: TensorTypeName | null) =>
  (place: Place): TensorTypeName | null => {
    if (place.role === 'output') return 'Q5_K';
    if (place.role === 'token_embd') return table;
    if (place.role === 'attn_v') return place.headsPerKvHead >= 4 ? 'Q4_K' : careful;
    if (place.role === 'attn_output') return attentionOutput;
    return place.role === 'ffn_down' && isFirst(place, 8) ? careful : null;
  };

/** The mixes of llama.cpp, which files are named after. */
export const MIXES = {
  F32: { fileType: 0, type: 'F32' },
  F16: { fileType: 1, type: 'F16' },
  BF16: { fileType: 32, type: 'BF16' },
  Q8_0: { fileType: 7, type: 'Q8_0' },
  Q6_K: { fileType: 18, type: 'Q6_K' },
  Q5_K_M: {
    fileType: 17,
    type: 'Q5_K',
    better: withOutput((place) => {
      if (place.role === 'attn_qkv') return 'Q6_K';
      return (place.role === 'attn_v' || place.role === 'ffn_down') && isSensitive(place) ? 'Q6_K' : null;
    }),
  },
  Q5_K_S: { fileType: 16, type: 'Q5_K', better: onlyOutput },
  Q4_K_M: {
    fileType: 15,
    type: 'Q4_K',
    better: withOutput((place) => {
      if (place.role === 'attn_qkv') return 'Q5_K';
      return (place.role === 'attn_v' || place.role === 'ffn_down') && isSensitive(place) ? 'Q6_K' : null;
    }),
  },
  Q4_K_S: {
    fileType: 14,
    type: 'Q4_K',
    better: withOutput((place) => {
      if (place.role === 'attn_v') return place.layer < 4 ? 'Q5_K' : null;
      return place.role === 'ffn_down' && isFirst(place, 8) ? 'Q5_K' : null;
    }),
  },
  Q3_K_M: {
    fileType: 12,
    type: 'Q3_K',
    better: withOutput((place) => {
      if (place.role === 'attn_v') return place.layer < 2 ? 'Q5_K' : 'Q4_K';
      if (place.role === 'ffn_down') return isFirst(place, 16) ? 'Q5_K' : 'Q4_K';
      return place.role === 'attn_output' || place.role === 'attn_qkv' ? 'Q4_K' : null;
    }),
  },
  Q2_K: {
    fileType: 10,
    type: 'Q2_K',
    better: withOutput((place) => {
      if (place.role === 'attn_v') return place.headsPerKvHead >= 4 ? 'Q4_K' : 'Q3_K';
      return place.role === 'ffn_down' || place.role === 'attn_output' ? 'Q3_K' : null;
    }),
  },
  IQ3_S: {
    fileType: 26,
    type: 'IQ3_S',
    better: withOutput((place) => (place.role === 'attn_v' && place.headsPerKvHead >= 4 ? 'Q4_K' : null)),
  },
  IQ3_XXS: {
    fileType: 23,
    type: 'IQ3_XXS',
    needsImatrix: true,
    better: (place) => {
      if (place.role === 'output') return 'Q5_K';
      if (place.role === 'token_embd' || place.role === 'attn_output') return 'IQ3_S';
      if (place.role === 'attn_q' || place.role === 'attn_k') return 'IQ2_S';
      return place.role === 'attn_v' && place.headsPerKvHead >= 4 ? 'Q4_K' : null;
    },
  },
  IQ2_S: { fileType: 28, type: 'IQ2_S', needsImatrix: true, better: lowBits('IQ3_S', 'IQ3_S', 'IQ3_S') },
  IQ2_XS: { fileType: 20, type: 'IQ2_XS', needsImatrix: true, better: lowBits('Q2_K', 'Q2_K', null) },
  IQ2_XXS: { fileType: 19, type: 'IQ2_XXS', needsImatrix: true, better: lowBits('Q2_K', 'Q2_K', null) },
  IQ1_M: { fileType: 31, type: 'IQ1_M', needsImatrix: true, better: lowBits('Q2_K', 'Q2_K', 'IQ2_XXS') },
  IQ1_S: { fileType: 24, type: 'IQ1_S', needsImatrix: true, better: lowBits('Q2_K', 'Q2_K', 'IQ2_XXS') },
  IQ4_XS: {
    fileType: 30,
    type: 'IQ4_XS',
    better: withOutput((place) => {
      if (place.role === 'attn_v') return place.headsPerKvHead >= 4 ? 'Q5_K' : null;
      return place.role === 'ffn_down' && isFirst(place, 8) ? 'Q5_K' : null;
    }),
  },
  IQ4_NL: { fileType: 25, type: 'IQ4_NL', better: onlyOutput },
  Q5_0: { fileType: 8, type: 'Q5_0', better: onlyOutput },
  Q5_1: { fileType: 9, type: 'Q5_1', better: onlyOutput },
  Q4_0: { fileType: 2, type: 'Q4_0', better: onlyOutput },
  Q4_1: { fileType: 3, type: 'Q4_1', better: onlyOutput },
  MXFP4: { fileType: 38, type: 'MXFP4', better: onlyOutput },
} as const satisfies Record<string, Mix>;

/** The name of a mix, such as `Q4_K_M`. */
export type MixName = keyof typeof MIXES;

/** Types with blocks of 32 for matrices whose columns are not a multiple of 256. */
export const SMALL_BLOCKS: Partial<Record<TensorTypeName, TensorTypeName>> = {
  Q2_K: 'Q4_0',
  Q3_K: 'Q4_0',
  IQ1_S: 'IQ4_NL',
  IQ1_M: 'IQ4_NL',
  IQ2_XXS: 'IQ4_NL',
  IQ2_XS: 'IQ4_NL',
  IQ2_S: 'IQ4_NL',
  IQ3_XXS: 'IQ4_NL',
  IQ3_S: 'IQ4_NL',
  Q4_K: 'Q5_0',
  Q5_K: 'Q5_1',
  Q6_K: 'Q8_0',
  IQ4_XS: 'IQ4_NL',
};
