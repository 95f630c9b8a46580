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
import { type DeltaNetArchitecture, deltaNetTraits } from './random-delta-net.ts';
import { type DenseArchitecture, denseTraits } from './random-dense-traits.ts';
import { expertMetadata, graniteExperts, type RandomExperts, writeExperts } from './random-experts.ts';
import { type StreamedArchitecture, streamedTraits } from './random-gemma3n.ts';
import { type MixedHeadsArchitecture, mixedHeadsTraits } from './random-gemma4.ts';
import { type HybridArchitecture, hybridTraits } from './random-hybrid.ts';
import { type LatentArchitecture, latentTraits } from './random-latent.ts';
import { normals } from './random-values.ts';
import { randomVocabulary } from './random-vocabulary.ts';

export type RandomArchitecture =
  | 'llama'
  | 'qwen2'
  | 'qwen2moe'
  | 'qwen3'
  | 'qwen3moe'
  | 'phi3'
  | 'gemma2'
  | 'gemma3'
  | 'gpt-oss'
  | DenseArchitecture
  | HybridArchitecture
  | DeltaNetArchitecture
  | LatentArchitecture
  | StreamedArchitecture
  | MixedHeadsArchitecture;

export interface RandomShape {
  numLayers: number;
  embeddingDim: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  feedForwardDim: number;
  vocabSize: number;
  contextLength: number;
  /** Replaces the feed-forward layers. */
  experts?: RandomExperts;
  /** deepseek2: queries without a rank of their own. */
  isLite?: boolean;
  /** Stacked matrices of old files: of keys and values of all heads (deepseek2), of a delta net's inputs (qwen3next). */
  isStacked?: boolean;
}

export interface RandomModelOptions {
  architecture: RandomArchitecture;
  /** Type of all matrices; norms, biases and rope factors are F32. */
  type: TensorTypeName;
  seed: number;
  shape?: Partial<RandomShape>;
  /** Replaces or adds keys; a null value removes the key. */
  metadata?: readonly (MetadataEntry | { key: string; value: null })[];
  /** The type of single matrices, instead of `type`. */
  typeOf?: (name: string) => TensorTypeName;
  /** Omits tensors. */
  omit?: (name: string) => boolean;
  /** Tensors with the bytes of others, by name. */
  copies?: Readonly<Record<string, string>>;
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
  const shape: RandomShape = { ...defaultShape(options), ...options.shape };
  const traits = traitsOf[options.architecture](shape);
  const { metadata, vectors, headNorms, hasPostNorms, hasBiases, isFused, isTied, hasSinks = false } = traits;
  const { inputNorms = 'both', hasMoreBiases = false, hasNormBiases = false, isGateless = false } = traits;
  const { experts } = shape;
  const entries = new Map<string, MetadataEntry>();
  for (const entry of [
    ...commonMetadata(options.architecture, shape),
    ...metadata,
    ...(experts === undefined ? [] : expertMetadata(options.architecture, experts)),
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
    const type = options.typeOf?.(name) ?? options.type;
    const data = () => randomRows(type, numRows, numCols, seedOf(options.seed, name), deviation);
    tensors.set(name, { name, type, dims: [numCols, numRows], data });
  };
  const stack = (
    name: string,
    [numCols, numRows, count = 1]: readonly [numCols: number, numRows: number, count?: number],
  ): void => {
    matrix(name, numRows * count, numCols);
    if (count > 1) tensors.set(name, { ...tensors.get(name)!, dims: [numCols, numRows, count] });
  };
  const floats = (name: string, dims: readonly number[], deviation: number, mean = 0): void => {
    const length = dims.reduce((product, dim) => product * dim, 1);
    const values = normals(length, seedOf(options.seed, name), deviation).map((value) => mean + value);
    tensors.set(name, { name, type: 'F32', dims: [...dims], data: new Uint8Array(values.buffer) });
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
  const layerNorm = (name: string, mean = 1): void => {
    norm(`${name}.weight`, dim, mean);
    if (hasNormBiases) bias(`${name}.bias`, dim);
  };
  const bias = (name: string, length: number): void => vector(name, normals(length, seedOf(options.seed, name), 0.2));

  const { embeddingDim: dim, feedForwardDim, numHeads, numKvHeads, headDim, vocabSize } = shape;
  const [qRows, kvRows] = [numHeads * headDim, numKvHeads * headDim];
  // With a tied table of large vectors each token would be most like itself, and the model would only repeat.
  matrix('token_embd.weight', vocabSize, dim, isTied ? 0.07 : 1);
  layerNorm('output_norm', isTied ? 4 : 1);
  if (!isTied) matrix('output.weight', vocabSize, dim, 3 / Math.sqrt(dim));
  if (!isTied && hasMoreBiases) bias('output.bias', vocabSize);
  for (let layer = 0; layer < shape.numLayers; layer++) {
    const block = `blk.${layer}`;
    const layerExperts = layer < (experts?.numDenseLayers ?? 0) ? undefined : experts;
    if (inputNorms !== 'none') layerNorm(`${block}.attn_norm`);
    if (isFused === true) {
      matrix(`${block}.attn_qkv.weight`, qRows + 2 * kvRows, dim);
    } else {
      // Large enough that attention prefers some tokens.
      matrix(`${block}.attn_q.weight`, qRows, dim, 1.2 / Math.sqrt(dim));
      matrix(`${block}.attn_k.weight`, kvRows, dim, 1.2 / Math.sqrt(dim));
      matrix(`${block}.attn_v.weight`, kvRows, dim);
    }
    if (layerExperts !== undefined) {
      writeExperts(block, dim, layerExperts, { matrix: stack, floats });
    } else if (isFused === true || isFused === 'gate') {
      matrix(`${block}.ffn_up.weight`, 2 * feedForwardDim, dim);
    } else {
      if (!isGateless) matrix(`${block}.ffn_gate.weight`, feedForwardDim, dim);
      matrix(`${block}.ffn_up.weight`, feedForwardDim, dim);
    }
    if (hasSinks) {
      bias(`${block}.attn_output.bias`, dim);
      floats(`${block}.attn_sinks.weight`, [numHeads], 1);
    }
    if (hasBiases) {
      bias(`${block}.attn_q.bias`, qRows);
      bias(`${block}.attn_k.bias`, kvRows);
      bias(`${block}.attn_v.bias`, kvRows);
    }
    if (hasMoreBiases) {
      bias(`${block}.attn_output.bias`, dim);
      bias(`${block}.ffn_up.bias`, feedForwardDim);
      bias(`${block}.ffn_down.bias`, dim);
    }
    if (headNorms !== undefined) {
      norm(`${block}.attn_q_norm.weight`, headNorms === 'each' ? headDim : qRows);
      norm(`${block}.attn_k_norm.weight`, headNorms === 'each' ? headDim : kvRows);
    }
    matrix(`${block}.attn_output.weight`, dim, qRows);
    if (inputNorms === 'both') layerNorm(`${block}.${hasSinks ? 'post_attention_norm' : 'ffn_norm'}`);
    if (layerExperts === undefined) matrix(`${block}.ffn_down.weight`, dim, feedForwardDim);
    if (hasPostNorms) {
      norm(`${block}.post_attention_norm.weight`, dim);
      norm(`${block}.post_ffw_norm.weight`, dim);
    }
  }
  traits.adjust?.({
    matrix,
    stack,
    floats,
    remove: (name) => void tensors.delete(name),
    rename(from, to) {
      tensors.set(to, { ...tensors.get(from)!, name: to });
      tensors.delete(from);
    },
  });
  for (const [name, values] of Object.entries({ ...vectors, ...options.vectors })) vector(name, values);
  for (const [name, source] of Object.entries(options.copies ?? {})) {
    tensors.set(name, { ...tensors.get(source)!, name });
  }
  for (const name of tensors.keys()) if (options.omit?.(name)) tensors.delete(name);
  writeGguf({ metadata: [...entries.values()], tensors: [...tensors.values()] }, sink);
}

/** Odd but valid: grouped heads, wide heads if the architecture allows them, layers past Gemma 3's first global one. */
function defaultShape({ architecture, type }: RandomModelOptions): RandomShape {
  const isWide = quantFormats[type].blockSize > 32;
  const hasFreeHeads = ['qwen3', 'qwen3moe', 'gpt-oss', 'gemma', 'gemma2', 'gemma3', 'gemma3n', 'gemma4'].includes(
    architecture,
  );
  const embeddingDim = isWide ? 256 : 96;
  const headDim = hasFreeHeads ? (isWide ? 128 : 32) : isWide ? 32 : 16;
  return {
    numLayers: NUM_LAYERS[architecture] ?? 4,
    embeddingDim,
    numHeads: hasFreeHeads ? 4 : embeddingDim / headDim,
    numKvHeads: architecture === 'gemma3' ? 1 : 2,
    headDim,
    feedForwardDim: isWide ? 512 : 160,
    vocabSize: 320,
    contextLength: 256,
    ...(architecture in EXPERTS ? { experts: EXPERTS[architecture]!(isWide ? 256 : 64) } : {}),
  };
}

/** Past the first layer without a window, and past the first of each kind that shares keys and values. */
const NUM_LAYERS: Partial<Record<RandomArchitecture, number>> = { gemma3: 8, cohere2: 8, gemma3n: 25, gemma4: 9 };

const qwenExperts = (dim: number): RandomExperts => ({
  numExperts: 8,
  numUsed: 3,
  feedForwardDim: dim,
  sharedDim: 2 * dim,
  hasSharedRouter: true,
});

const EXPERTS: Partial<Record<RandomArchitecture, (dim: number) => RandomExperts>> = {
  qwen3moe: (dim) => ({ numExperts: 8, numUsed: 3, feedForwardDim: dim }),
  qwen2moe: (dim) => ({ ...qwenExperts(dim), numExperts: 6, numUsed: 2 }),
  'gpt-oss': (dim) => ({ numExperts: 8, numUsed: 4, feedForwardDim: dim, hasBiases: true }),
  granitemoe: (dim) => graniteExperts(6, dim, 0),
  deepseek2: (dim) => ({
    numExperts: 8,
    numUsed: 3,
    feedForwardDim: dim,
    sharedDim: 2 * dim,
    numDenseLayers: 1,
    hasChoiceBias: true,
    keys: {
      expert_shared_count: 2,
      expert_gating_func: 2,
      expert_weights_norm: true,
      expert_weights_scale: 1.8,
      expert_group_count: 4,
      expert_group_used_count: 2,
    },
  }),
  qwen3next: (dim) => qwenExperts(dim),
  qwen35moe: (dim) => qwenExperts(dim),
  lfm2moe: (dim) => ({
    numExperts: 8,
    numUsed: 3,
    feedForwardDim: dim,
    numDenseLayers: 1,
    hasChoiceBias: true,
    keys: { expert_gating_func: 2 },
  }),
};

/** Changes the tensors of a Llama to those of another architecture. */
export interface TensorMaker {
  matrix(name: string, numRows: number, numCols: number, deviation?: number): void;
  /** `count` matrices. */
  stack(name: string, dims: readonly [numCols: number, numRows: number, count: number]): void;
  /** F32 of any dimensions. */
  floats(name: string, dims: readonly number[], deviation: number, mean?: number): void;
  remove(name: string): void;
  rename(from: string, to: string): void;
}

export interface Traits {
  readonly metadata: readonly MetadataEntry[];
  readonly vectors?: Readonly<Record<string, Float32Array>>;
  readonly headNorms?: 'each' | 'together';
  readonly hasPostNorms?: boolean;
  /** Norms before the blocks; default both. */
  readonly inputNorms?: 'both' | 'attention' | 'none';
  readonly hasNormBiases?: boolean;
  /** Of q, k and v. */
  readonly hasBiases?: boolean;
  /** Of all other matrices. */
  readonly hasMoreBiases?: boolean;
  /** q, k, v and gate, up are stacked, or only the latter. */
  readonly isFused?: boolean | 'gate';
  readonly isGateless?: boolean;
  readonly isTied?: boolean;
  readonly adjust?: (make: TensorMaker) => void;
  /** gpt-oss: sinks, a bias of the output, and another name of the second norm. */
  readonly hasSinks?: boolean;
}

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const string = (key: string, value: string): MetadataEntry => ({ key, type: 'string', value });

/** Rising from 1 to `last`, like the factors of stretched rotations. */
const ramp = (length: number, last: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => 1 + ((last - 1) * i) / Math.max(1, length - 1));

const traitsOf: Record<RandomArchitecture, (shape: RandomShape) => Traits> = {
  ...denseTraits,
  ...hybridTraits,
  ...latentTraits,
  ...deltaNetTraits,
  ...streamedTraits,
  ...mixedHeadsTraits,
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
    headNorms: 'each',
  }),
  qwen2moe: () => ({ metadata: [f32('qwen2moe.rope.freq_base', 1e6)], hasBiases: true }),
  qwen3moe: ({ headDim }) => ({
    metadata: [
      f32('qwen3moe.rope.freq_base', 1e6),
      u32('qwen3moe.attention.key_length', headDim),
      u32('qwen3moe.attention.value_length', headDim),
    ],
    headNorms: 'each',
  }),
  'gpt-oss': ({ headDim }) => ({
    metadata: [
      f32('gpt-oss.rope.freq_base', 150000),
      u32('gpt-oss.attention.key_length', headDim),
      u32('gpt-oss.attention.value_length', headDim),
      u32('gpt-oss.attention.sliding_window', 8),
      string('gpt-oss.rope.scaling.type', 'yarn'),
      f32('gpt-oss.rope.scaling.factor', 4),
      u32('gpt-oss.rope.scaling.original_context_length', 64),
    ],
    hasBiases: true,
    hasSinks: true,
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
    headNorms: 'each',
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
