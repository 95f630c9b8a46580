import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { createMemorySink, type MetadataEntry, type TensorToWrite, writeGguf } from '../../src/gguf/index.ts';
import { quantizeRow } from '../../src/quant/index.ts';
import { normals } from './random-values.ts';
import { randomVocabulary } from './random-vocabulary.ts';

export interface RandomVisionOptions {
  type?: TensorTypeName;
  numLayers?: number;
  /** Width of the rows: the language model's embedding length. */
  outputDim?: number;
  seed?: number;
  /** Replaces or adds keys; a null value removes the key. */
  metadata?: readonly (MetadataEntry | { key: string; value: null })[];
  omit?: (name: string) => boolean;
}

export const VISION_SHAPE = {
  imageSize: 24,
  patchSize: 4,
  scaleFactor: 2,
  dim: 32,
  numHeads: 4,
  ffn: 64,
  epsilon: 1e-6,
  mean: [0.5, 0.4, 0.6],
  std: [0.5, 0.25, 0.4],
} as const;

/** (24 / 4 / 2)² */
export const VISION_TOKENS = 9;

/** A small SigLIP encoder with the projector of Idefics 3 and random weights, as the bytes of an mmproj file. */
export function buildRandomVision(options: RandomVisionOptions = {}): Uint8Array<ArrayBuffer> {
  const { type = 'F32', numLayers = 2, outputDim = 64 } = options;
  const { imageSize, patchSize, scaleFactor, dim, numHeads, ffn, epsilon, mean, std } = VISION_SHAPE;
  const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
  const entries = new Map<string, MetadataEntry>();
  for (const entry of [
    { key: 'general.architecture', type: 'string', value: 'clip' },
    { key: 'clip.has_vision_encoder', type: 'bool', value: true },
    { key: 'clip.projector_type', type: 'string', value: 'idefics3' },
    { key: 'clip.use_gelu', type: 'bool', value: true },
    u32('clip.vision.image_size', imageSize),
    u32('clip.vision.patch_size', patchSize),
    u32('clip.vision.embedding_length', dim),
    u32('clip.vision.feed_forward_length', ffn),
    u32('clip.vision.block_count', numLayers),
    u32('clip.vision.attention.head_count', numHeads),
    { key: 'clip.vision.attention.layer_norm_epsilon', type: 'f32', value: Math.fround(epsilon) },
    { key: 'clip.vision.image_mean', type: 'array<f32>', value: Float32Array.from(mean) },
    { key: 'clip.vision.image_std', type: 'array<f32>', value: Float32Array.from(std) },
    u32('clip.vision.projector.scale_factor', scaleFactor),
  ] as MetadataEntry[]) {
    entries.set(entry.key, entry);
  }
  for (const entry of options.metadata ?? []) {
    if (entry.value === null) entries.delete(entry.key);
    else entries.set(entry.key, entry as MetadataEntry);
  }
  const tensors: TensorToWrite[] = [];
  let seed = options.seed ?? 100;
  const put = (name: string, dims: readonly number[], deviation: number, center = 0): void => {
    const count = dims.reduce((product, size) => product * size, 1);
    const values = normals(count, seed++, deviation).map((value) => center + value);
    // As in published files, the convolution and the positions are floats.
    const tensorType = dims.length === 2 && name !== 'v.position_embd.weight' ? type : 'F32';
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
  put('v.patch_embd.weight', [patchSize, patchSize, 3, dim], 1 / Math.sqrt(3 * patchSize ** 2));
  put('v.patch_embd.bias', [dim], 0.2);
  put('v.position_embd.weight', [dim, (imageSize / patchSize) ** 2], 0.5);
  for (let layer = 0; layer < numLayers; layer++) {
    const block = `v.blk.${layer}`;
    norm(`${block}.ln1`);
    module(`${block}.attn_q`, dim, dim, 1.5);
    module(`${block}.attn_k`, dim, dim, 1.5);
    module(`${block}.attn_v`, dim, dim);
    module(`${block}.attn_out`, dim, dim);
    norm(`${block}.ln2`);
    module(`${block}.ffn_up`, dim, ffn);
    module(`${block}.ffn_down`, ffn, dim);
  }
  norm('v.post_ln');
  const joined = dim * scaleFactor ** 2;
  put('mm.model.fc.weight', [joined, outputDim], 1 / Math.sqrt(joined));
  const sink = createMemorySink();
  const included = tensors.filter(({ name }) => options.omit?.(name) !== true);
  writeGguf({ metadata: [...entries.values()], tensors: included }, sink);
  return sink.toBytes();
}

/** The vocabulary of a random language model with the tokens around images. */
export function imageVocabulary(vocabSize = 320): MetadataEntry[] {
  const names = ['<fake_token_around_image>', '<global-img>', '<image>'];
  return randomVocabulary(vocabSize).map((entry) => {
    if (entry.key === 'tokenizer.ggml.tokens') {
      return { ...entry, value: [...(entry.value as readonly string[]).slice(0, -names.length), ...names] };
    }
    if (entry.key !== 'tokenizer.ggml.token_type') return entry;
    return { ...entry, value: (entry.value as Int32Array).map((type, i) => (i < vocabSize - names.length ? type : 3)) };
  });
}
