import { createRandom } from '../../src/core/random.ts';
import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import {
  type ByteSink,
  createMemorySink,
  type MetadataEntry,
  type TensorToWrite,
  writeGguf,
} from '../../src/gguf/index.ts';
import { quantFormats } from '../../src/quant/index.ts';
import { randomBlocks } from './random-blocks.ts';
import { normals } from './random-values.ts';
import { randomVocabulary } from './random-vocabulary.ts';

export type RandomArchitecture = 'llama' | 'qwen2' | 'qwen3' | 'phi3' | 'gemma2' | 'gemma3';

export interface RandomShape {
  numLayers: number;
  embeddingDim: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  feedForwardDim: number;
  vocabSize: number;
  contextLength: number;
}

export interface RandomModelOptions {
  architecture: RandomArchitecture;
  /** Type of all matrices; norms, biases and rope factors are F32. */
  type: TensorTypeName;
  seed: number;
  shape?: Partial<RandomShape>;
  /** Replaces or adds keys; a null value removes the key. */
  metadata?: readonly (MetadataEntry | { key: string; value: null })[];
  /** Omits tensors. */
  omit?: (name: string) => boolean;
  /** Adds or replaces F32 vectors. */
  vectors?: Readonly<Record<string, Float32Array>>;
}

/** A small random model with logits spread like a real one's, as the bytes of a GGUF file. */
export function buildRandomModel(options: RandomModelOptions): Uint8Array<ArrayBuffer> {
  const sink = createMemorySink();
  writeRandomModel(options, sink);
  return sink.toBytes();
}

/** Like `buildRandomModel`, tensor by tensor into a sink: also for models of real size. */
export function writeRandomModel(options: RandomModelOptions, sink: ByteSink): void {
  const shape = { ...defaultShape(options), ...options.shape };
  const { metadata, vectors, hasHeadNorms, hasPostNorms, hasBiases, isFused, isTied } =
    traits[options.architecture](shape);
  const entries = new Map<string, MetadataEntry>();
  for (const entry of [
    ...commonMetadata(options.architecture, shape),
    ...metadata,
    ...randomVocabulary(shape.vocabSize),
  ]) {
    entries.set(entry.key, entry);
  }
  for (const entry of options.metadata ?? []) {
    if (entry.value === null) entries.delete(entry.key);
    else entries.set(entry.key, entry as MetadataEntry);
  }
  const tensors = new Map<string, TensorToWrite>();
  const matrix = (name: string, numRows: number, numCols: number, deviation = 0.6 / Math.sqrt(numCols)): void => {
    const data = () => randomRows(options.type, numRows, numCols, seedOf(options.seed, name), deviation);
    tensors.set(name, { name, type: options.type, dims: [numCols, numRows], data });
  };
  const vector = (name: string, values: Float32Array): void => {
    tensors.set(name, { name, type: 'F32', dims: [values.length], data: new Uint8Array(values.slice().buffer) });
  };
  const norm = (name: string, length: number, mean = 1): void => {
    const values = normals(length, seedOf(options.seed, name), 0.2);
    vector(
      name,
      values.map((value) => mean * (1 + value)),
    );
  };
  const bias = (name: string, length: number): void => vector(name, normals(length, seedOf(options.seed, name), 0.2));

  const { embeddingDim: dim, feedForwardDim, numHeads, numKvHeads, headDim, vocabSize } = shape;
  const [qRows, kvRows] = [numHeads * headDim, numKvHeads * headDim];
  // With a tied table of large vectors each token would be most like itself, and the model would only repeat.
  matrix('token_embd.weight', vocabSize, dim, isTied ? 0.07 : 1);
  norm('output_norm.weight', dim, isTied ? 4 : 1);
  if (!isTied) matrix('output.weight', vocabSize, dim, 3 / Math.sqrt(dim));
  for (let layer = 0; layer < shape.numLayers; layer++) {
    const block = `blk.${layer}`;
    norm(`${block}.attn_norm.weight`, dim);
    if (isFused) {
      matrix(`${block}.attn_qkv.weight`, qRows + 2 * kvRows, dim);
      matrix(`${block}.ffn_up.weight`, 2 * feedForwardDim, dim);
    } else {
      // Large enough that attention prefers some tokens.
      matrix(`${block}.attn_q.weight`, qRows, dim, 1.2 / Math.sqrt(dim));
      matrix(`${block}.attn_k.weight`, kvRows, dim, 1.2 / Math.sqrt(dim));
      matrix(`${block}.attn_v.weight`, kvRows, dim);
      matrix(`${block}.ffn_gate.weight`, feedForwardDim, dim);
      matrix(`${block}.ffn_up.weight`, feedForwardDim, dim);
    }
    if (hasBiases) {
      bias(`${block}.attn_q.bias`, qRows);
      bias(`${block}.attn_k.bias`, kvRows);
      bias(`${block}.attn_v.bias`, kvRows);
    }
    if (hasHeadNorms) {
      norm(`${block}.attn_q_norm.weight`, headDim);
      norm(`${block}.attn_k_norm.weight`, headDim);
    }
    matrix(`${block}.attn_output.weight`, dim, qRows);
    norm(`${block}.ffn_norm.weight`, dim);
    matrix(`${block}.ffn_down.weight`, dim, feedForwardDim);
    if (hasPostNorms) {
      norm(`${block}.post_attention_norm.weight`, dim);
      norm(`${block}.post_ffw_norm.weight`, dim);
    }
  }
  for (const [name, values] of Object.entries({ ...vectors, ...options.vectors })) vector(name, values);
  for (const name of tensors.keys()) if (options.omit?.(name)) tensors.delete(name);
  writeGguf({ metadata: [...entries.values()], tensors: [...tensors.values()] }, sink);
}

/** Odd but valid: grouped heads, wide heads if the architecture allows them, layers past Gemma 3's first global one. */
function defaultShape({ architecture, type }: RandomModelOptions): RandomShape {
  const isWide = quantFormats[type].blockSize === 256;
  const hasFreeHeads = architecture !== 'llama' && architecture !== 'qwen2' && architecture !== 'phi3';
  const embeddingDim = isWide ? 256 : 96;
  const headDim = hasFreeHeads ? (isWide ? 128 : 32) : isWide ? 32 : 16;
  return {
    numLayers: architecture === 'gemma3' ? 8 : 4,
    embeddingDim,
    numHeads: hasFreeHeads ? 4 : embeddingDim / headDim,
    numKvHeads: architecture === 'gemma3' ? 1 : 2,
    headDim,
    feedForwardDim: isWide ? 512 : 160,
    vocabSize: 320,
    contextLength: 256,
  };
}

interface Traits {
  readonly metadata: readonly MetadataEntry[];
  readonly vectors?: Readonly<Record<string, Float32Array>>;
  readonly hasHeadNorms?: boolean;
  readonly hasPostNorms?: boolean;
  readonly hasBiases?: boolean;
  readonly isFused?: boolean;
  readonly isTied?: boolean;
}

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const string = (key: string, value: string): MetadataEntry => ({ key, type: 'string', value });

/** Rising from 1 to `last`, like the factors of stretched rotations. */
const ramp = (length: number, last: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => 1 + ((last - 1) * i) / Math.max(1, length - 1));

const traits: Record<RandomArchitecture, (shape: RandomShape) => Traits> = {
  llama: ({ headDim }) => ({
    metadata: [f32('llama.rope.freq_base', 10000)],
    vectors: { 'rope_freqs.weight': ramp(headDim / 2, 8) },
  }),
  qwen2: () => ({ metadata: [f32('qwen2.rope.freq_base', 1e6)], hasBiases: true, isTied: true }),
  qwen3: ({ headDim }) => ({
    metadata: [
      f32('qwen3.rope.freq_base', 1e6),
      u32('qwen3.attention.key_length', headDim),
      u32('qwen3.attention.value_length', headDim),
      string('qwen3.rope.scaling.type', 'yarn'),
      f32('qwen3.rope.scaling.factor', 4),
      u32('qwen3.rope.scaling.original_context_length', 64),
    ],
    hasHeadNorms: true,
  }),
  phi3: ({ headDim }) => {
    const rotaryDim = headDim * 0.75; // Phi 4 mini rotates three quarters of a head.
    return {
      metadata: [
        u32('phi3.rope.dimension_count', rotaryDim),
        u32('phi3.rope.scaling.original_context_length', 128),
        f32('phi3.rope.scaling.attn_factor', 1.19),
      ],
      vectors: {
        'rope_factors_short.weight': ramp(rotaryDim / 2, 1.5),
        'rope_factors_long.weight': ramp(rotaryDim / 2, 20),
      },
      isFused: true,
    };
  },
  gemma2: ({ headDim }) => ({
    metadata: [
      u32('gemma2.attention.key_length', headDim),
      u32('gemma2.attention.value_length', headDim),
      u32('gemma2.attention.sliding_window', 8),
      f32('gemma2.attn_logit_softcapping', 5),
      f32('gemma2.final_logit_softcapping', 10),
    ],
    hasPostNorms: true,
    isTied: true,
  }),
  gemma3: ({ headDim }) => ({
    metadata: [
      u32('gemma3.attention.key_length', headDim),
      u32('gemma3.attention.value_length', headDim),
      u32('gemma3.attention.sliding_window', 8),
      f32('gemma3.rope.freq_base', 1e6),
      string('gemma3.rope.scaling.type', 'linear'),
      f32('gemma3.rope.scaling.factor', 8),
    ],
    hasHeadNorms: true,
    hasPostNorms: true,
    isTied: true,
  }),
};

function commonMetadata(architecture: RandomArchitecture, shape: RandomShape): MetadataEntry[] {
  const key = (name: string): string => `${architecture}.${name}`;
  return [
    string('general.architecture', architecture),
    string('general.name', 'random weights'),
    u32(key('context_length'), shape.contextLength),
    u32(key('embedding_length'), shape.embeddingDim),
    u32(key('block_count'), shape.numLayers),
    u32(key('feed_forward_length'), shape.feedForwardDim),
    u32(key('attention.head_count'), shape.numHeads),
    u32(key('attention.head_count_kv'), shape.numKvHeads),
    f32(key('attention.layer_norm_rms_epsilon'), 1e-5),
    u32(key('vocab_size'), shape.vocabSize),
    u32(key('rope.dimension_count'), shape.headDim),
  ];
}

/** Number of new random values; larger matrices repeat them, because a real size would take minutes. */
const MAX_FRESH_VALUES = 2 ** 18;

function* randomRows(
  type: TensorTypeName,
  numRows: number,
  numCols: number,
  seed: number,
  deviation: number,
): Generator<Uint8Array> {
  const freshRows = Math.min(numRows, Math.max(1, Math.floor(MAX_FRESH_VALUES / numCols)));
  const fresh = cachedBlocks(type, freshRows * numCols, seed, deviation);
  for (let row = 0; row < numRows; row += freshRows) {
    yield fresh.subarray(0, (fresh.length / freshRows) * Math.min(freshRows, numRows - row));
  }
}

/** Many files of a worker process build models of the same shapes and seeds. */
const MAX_CACHED_BYTES = 2 ** 25;
const blockCache = new Map<string, Uint8Array>();
let cachedBytes = 0;

function cachedBlocks(type: TensorTypeName, numValues: number, seed: number, deviation: number): Uint8Array {
  const key = `${type} ${numValues} ${seed} ${deviation}`;
  const blocks = blockCache.get(key) ?? randomBlocks(type, numValues, seed, deviation);
  if (!blockCache.has(key) && cachedBytes + blocks.length <= MAX_CACHED_BYTES) {
    blockCache.set(key, blocks);
    cachedBytes += blocks.length;
  }
  return blocks;
}

/** A separate seed for each tensor. */
function seedOf(seed: number, name: string): number {
  let hash = seed;
  for (const character of name) hash = (Math.imul(hash, 31) + character.codePointAt(0)!) >>> 0;
  return Math.floor(createRandom(hash).next() * 2 ** 32);
}
