import { invalidFile, unsupportedFile } from '../failures.ts';
import type { LlamaShape } from './llama-metadata.ts';

/** Rotation frequency scaling of Llama 3.1 and later. */
export interface RopeStretch {
  readonly factor: number;
  readonly lowFreqFactor: number;
  readonly highFreqFactor: number;
  readonly originalContext: number;
}

/** A validated Hugging Face config.json of the Llama family. */
export interface HfLlamaConfig {
  readonly shape: LlamaShape;
  readonly isTied: boolean;
  readonly bosId: number | null;
  readonly eosId: number | null;
  /** Factor of `linear` scaling; 1: none. */
  readonly linearRopeFactor: number;
  readonly ropeStretch: RopeStretch | null;
}

export type Json = Readonly<Record<string, unknown>>;

const MODEL_TYPES = ['llama', 'mistral'];
/** Upper bound of any size, so that products of two stay below 2^53. */
const MAX_SIZE = 2 ** 26;
/** Settings that change the arithmetic; only the values we implement are accepted. */
const REQUIRED_VALUES: readonly (readonly [string, readonly unknown[]])[] = [
  ['hidden_act', ['silu', undefined]],
  ['attention_bias', [false, undefined, null]],
  ['mlp_bias', [false, undefined, null]],
  ['pretraining_tp', [1, undefined, null]],
  ['quantization_config', [undefined, null]],
];

export function isJsonObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Validates a parsed config.json; settings beyond plain Llama are `unsupported` and named. */
export function readHfLlamaConfig(config: unknown, name: string): HfLlamaConfig {
  if (!isJsonObject(config)) invalidFile('config.json is not an object');
  if (!MODEL_TYPES.includes(config['model_type'] as string)) {
    unsupportedFile(`config.json: model_type ${show(config['model_type'])}; supported are ${MODEL_TYPES.join(', ')}`);
  }
  for (const [key, values] of REQUIRED_VALUES) {
    if (!values.includes(config[key])) unsupportedFile(`config.json: ${key} ${show(config[key])} is not supported`);
  }
  const embeddingLength = size(config, 'hidden_size');
  const numHeads = size(config, 'num_attention_heads');
  const numKvHeads = size(config, 'num_key_value_heads', numHeads);
  const headLength = size(config, 'head_dim', embeddingLength / numHeads);
  if (numHeads % numKvHeads !== 0 || headLength % 2 !== 0) {
    invalidFile(
      `config.json: ${numHeads} heads must be a multiple of ${numKvHeads} KV heads, and the head size ${headLength} must be even`,
    );
  }
  const contextLength = size(config, 'max_position_embeddings');
  const shape: LlamaShape = {
    name,
    embeddingLength,
    numHeads,
    numKvHeads,
    headLength,
    // Within its sliding window a Mistral attends to everything, like Llama; beyond it our result would differ.
    contextLength: Math.min(contextLength, size(config, 'sliding_window', contextLength)),
    numLayers: size(config, 'num_hidden_layers'),
    ffnLength: size(config, 'intermediate_size'),
    vocabSize: size(config, 'vocab_size'),
    rmsEpsilon: positive(config, 'rms_norm_eps', 1e-6),
    ropeBase: positive(config, 'rope_theta', 10_000),
  };
  const isTied = config['tie_word_embeddings'] === true;
  return {
    shape,
    isTied,
    bosId: tokenId(config, 'bos_token_id'),
    eosId: tokenId(config, 'eos_token_id'),
    ...readRope(config),
  };
}

function readRope(config: Json): Pick<HfLlamaConfig, 'linearRopeFactor' | 'ropeStretch'> {
  const scaling = config['rope_scaling'];
  if (scaling === undefined || scaling === null) return { linearRopeFactor: 1, ropeStretch: null };
  if (!isJsonObject(scaling)) invalidFile('config.json: rope_scaling is not an object');
  const kind = scaling['rope_type'] ?? scaling['type'];
  if (kind === 'default') return { linearRopeFactor: 1, ropeStretch: null };
  if (kind === 'linear') return { linearRopeFactor: positive(scaling, 'factor'), ropeStretch: null };
  if (kind !== 'llama3') unsupportedFile(`config.json: rope_scaling ${show(kind)} is not supported`);
  const ropeStretch = {
    factor: positive(scaling, 'factor'),
    lowFreqFactor: positive(scaling, 'low_freq_factor'),
    highFreqFactor: positive(scaling, 'high_freq_factor'),
    originalContext: size(scaling, 'original_max_position_embeddings'),
  };
  if (ropeStretch.highFreqFactor <= ropeStretch.lowFreqFactor) {
    invalidFile(`config.json: high_freq_factor ${ropeStretch.highFreqFactor} is not above low_freq_factor`);
  }
  return { linearRopeFactor: 1, ropeStretch };
}

export function size(config: Json, key: string, defaultValue?: number): number {
  const value = config[key] ?? defaultValue;
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > MAX_SIZE) {
    invalidFile(`config.json: ${key} must be an integer from 1 to ${MAX_SIZE}, got ${show(value)}`, { key });
  }
  return value as number;
}

export function positive(config: Json, key: string, defaultValue?: number): number {
  const value = config[key] ?? defaultValue;
  if (typeof value !== 'number' || !(value > 0 && value < Infinity)) {
    invalidFile(`config.json: ${key} must be a positive number, got ${show(value)}`, { key });
  }
  return value;
}

/** Some models end on any of several tokens; training used the first. */
export function tokenId(config: Json, key: string): number | null {
  const value = config[key];
  const id: unknown = Array.isArray(value) ? value[0] : value;
  return Number.isSafeInteger(id) && (id as number) >= 0 ? (id as number) : null;
}

export function show(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 80);
}
