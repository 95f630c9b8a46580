import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { createMemorySink, type MetadataEntry, type TensorToWrite, writeGguf } from '../../src/gguf/index.ts';
import { quantizeRow } from '../../src/quant/index.ts';
import { normals } from './random-values.ts';

export interface RandomBertOptions {
  type?: TensorTypeName;
  numLayers?: number;
  /** Makes it a cross-encoder: `dense` has a hidden layer, `direct` has none. */
  head?: 'dense' | 'direct';
  /** Replaces or adds keys; a null value removes the key. */
  metadata?: readonly (MetadataEntry | { key: string; value: null })[];
  omit?: (name: string) => boolean;
}

export const BERT_SHAPE = { dim: 64, numHeads: 4, ffn: 96, vocabSize: 40, contextLength: 64 };

/** [PAD] [UNK] [CLS] [SEP], letters that begin a word, letters that continue one. */
const TOKENS = [
  '[PAD]',
  '[UNK]',
  '[CLS]',
  '[SEP]',
  ...Array.from({ length: 18 }, (_, i) => `\u2581${String.fromCharCode(97 + i)}`),
  ...Array.from({ length: 18 }, (_, i) => String.fromCharCode(97 + i)),
];

/** A small BERT encoder with random weights, as the bytes of a GGUF file. */
export function buildRandomBert(options: RandomBertOptions = {}): Uint8Array<ArrayBuffer> {
  const { type = 'F32', numLayers = 2 } = options;
  const { dim, numHeads, ffn, vocabSize, contextLength } = BERT_SHAPE;
  const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
  const entries = new Map<string, MetadataEntry>();
  for (const entry of [
    { key: 'general.architecture', type: 'string', value: 'bert' },
    u32('bert.context_length', contextLength),
    u32('bert.embedding_length', dim),
    u32('bert.block_count', numLayers),
    u32('bert.feed_forward_length', ffn),
    u32('bert.attention.head_count', numHeads),
    { key: 'bert.attention.layer_norm_epsilon', type: 'f32', value: Math.fround(1e-12) },
    { key: 'bert.attention.causal', type: 'bool', value: false },
    u32('bert.pooling_type', options.head === undefined ? 1 : 4),
    { key: 'tokenizer.ggml.model', type: 'string', value: 'bert' },
    { key: 'tokenizer.ggml.tokens', type: 'array<string>', value: TOKENS },
    { key: 'tokenizer.ggml.token_type', type: 'array<i32>', value: Int32Array.from(TOKENS, (_, i) => (i < 4 ? 3 : 1)) },
    u32('tokenizer.ggml.token_type_count', 2),
    u32('tokenizer.ggml.bos_token_id', 2),
    u32('tokenizer.ggml.seperator_token_id', 3),
    u32('tokenizer.ggml.unknown_token_id', 1),
  ] as MetadataEntry[]) {
    entries.set(entry.key, entry);
  }
  for (const entry of options.metadata ?? []) {
    if (entry.value === null) entries.delete(entry.key);
    else entries.set(entry.key, entry as MetadataEntry);
  }
  const tensors: TensorToWrite[] = [];
  let seed = 1;
  const put = (name: string, dims: readonly number[], deviation: number, mean = 0): void => {
    const values = normals(
      dims.reduce((product, size) => product * size, 1),
      seed++,
      deviation,
    ).map((value) => mean + value);
    const tensorType = dims.length === 1 ? 'F32' : type;
    tensors.push({ name, type: tensorType, dims, data: quantizeRow(tensorType, values) });
  };
  const norm = (name: string): void => {
    put(`${name}.weight`, [dim], 0.2, 1);
    put(`${name}.bias`, [dim], 0.2);
  };
  const module = (name: string, numCols: number, numRows: number, gain = 1): void => {
    put(`${name}.weight`, [numCols, numRows], gain / Math.sqrt(numCols));
    put(`${name}.bias`, [numRows], 0.2);
  };
  put('token_embd.weight', [dim, vocabSize], 1);
  put('token_types.weight', [dim, 2], 0.5);
  put('position_embd.weight', [dim, contextLength], 0.5);
  norm('token_embd_norm');
  for (let layer = 0; layer < numLayers; layer++) {
    const block = `blk.${layer}`;
    // Large enough that attention prefers some tokens.
    module(`${block}.attn_q`, dim, dim, 1.5);
    module(`${block}.attn_k`, dim, dim, 1.5);
    module(`${block}.attn_v`, dim, dim);
    module(`${block}.attn_output`, dim, dim);
    norm(`${block}.attn_output_norm`);
    module(`${block}.ffn_up`, dim, ffn);
    module(`${block}.ffn_down`, ffn, dim);
    norm(`${block}.layer_output_norm`);
  }
  if (options.head === 'dense') module('cls', dim, dim);
  if (options.head !== undefined) module('cls.output', dim, 1);
  const sink = createMemorySink();
  const included = tensors.filter(({ name }) => options.omit?.(name) !== true);
  writeGguf({ metadata: [...entries.values()], tensors: included }, sink);
  return sink.toBytes();
}
