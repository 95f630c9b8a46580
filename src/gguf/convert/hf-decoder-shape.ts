import { invalidFile, unsupportedFile } from '../failures.ts';
import { isJsonObject, type Json, positive, show, size, tokenId } from './hf-config.ts';
import type { LlamaShape } from './llama-metadata.ts';

/** The dimensions of a decoder in config.json. */
export interface HfDecoderShape extends Omit<LlamaShape, 'name' | 'rmsEpsilon' | 'ropeBase'> {
  /** Rotated values of a head. */
  readonly rotaryLength: number;
  readonly bosId: number | null;
  readonly eosId: number | null;
}

/** Reads and checks the dimensions; head counts must divide. */
export function readDecoderShape(config: Json): HfDecoderShape {
  const embeddingLength = size(config, 'hidden_size');
  const numHeads = size(config, 'num_attention_heads');
  const numKvHeads = size(config, 'num_key_value_heads', numHeads);
  const headLength = size(config, 'head_dim', embeddingLength / numHeads);
  const rotaryLength = size(
    config,
    'rotary_length',
    Math.floor(
      headLength *
        positive(ropeSettings(config), 'partial_rotary_factor', positive(config, 'partial_rotary_factor', 1)),
    ),
  );
  if (numHeads % numKvHeads !== 0 || headLength % 2 !== 0 || rotaryLength % 2 !== 0 || rotaryLength > headLength) {
    invalidFile(
      `config.json: ${numHeads} heads over ${numKvHeads} key/value heads, with ${rotaryLength} of ${headLength} values rotated; ` +
        'the first must be a multiple of the second, and the values even',
      { numHeads, numKvHeads, headLength, rotaryLength },
    );
  }
  return {
    contextLength: size(config, 'max_position_embeddings'),
    embeddingLength,
    numLayers: size(config, 'num_hidden_layers'),
    ffnLength: size(config, 'intermediate_size'),
    numHeads,
    numKvHeads,
    headLength,
    rotaryLength,
    vocabSize: size(config, 'vocab_size'),
    bosId: tokenId(config, 'bos_token_id'),
    eosId: tokenId(config, 'eos_token_id'),
  };
}

/** Rejects settings that change the arithmetic and have a value we do not implement; an absent setting is accepted. */
export function checkSettings(config: Json, accepted: Readonly<Record<string, readonly unknown[]>>): void {
  for (const [key, values] of Object.entries(accepted)) {
    const value = config[key];
    if (value === undefined || value === null) continue;
    if (values.some((accepted) => JSON.stringify(accepted) === JSON.stringify(value))) continue;
    unsupportedFile(`config.json: ${key} ${show(value)} is not supported (supported: ${values.map(show).join(', ')})`, {
      key,
    });
  }
}

/** `rope_scaling`, or `rope_parameters` of newer files; where those differ by kind of layer, the ones of layers without a window. */
export function ropeSettings(config: Json): Json {
  const settings = config['rope_parameters'] ?? config['rope_scaling'] ?? {};
  if (!isJsonObject(settings)) invalidFile('config.json: rope_scaling is not an object');
  const full = settings['full_attention'];
  if (isJsonObject(full)) return full;
  if (Object.values(settings).some(isJsonObject)) {
    unsupportedFile('config.json: rope_parameters for each kind of layer are not supported without full_attention');
  }
  return settings;
}

/** The base of rotations in layers with a window. */
export function localRopeBase(config: Json): number {
  const settings = config['rope_parameters'];
  const local = isJsonObject(settings) ? settings['sliding_attention'] : undefined;
  return isJsonObject(local) ? positive(local, 'rope_theta', 10_000) : positive(config, 'rope_local_base_freq', 10_000);
}
