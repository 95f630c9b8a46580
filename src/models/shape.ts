import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, Metadata } from '../gguf/index.ts';
import type { DecoderShape } from './types.ts';

// Above any published decoder, far below an overflow; the tensor table limits the other sizes.
const MAX_LAYERS = 1024;
const MAX_HEADS = 1024;
const MAX_HEAD_DIM = 1024;
const MAX_DIM = 2 ** 20;
const MAX_CONTEXT = 2 ** 27;

/** Reads the dimensions that every architecture has, with the defaults of the format. */
export function readShape(gguf: GgufFile): DecoderShape {
  const architecture = gguf.metadata.string('general.architecture');
  refuseExperts(gguf, architecture);
  const count = (key: string, max: number, defaultValue?: number): number =>
    readCount(gguf.metadata, `${architecture}.${key}`, max, defaultValue);
  const numLayers = count('block_count', MAX_LAYERS);
  const embeddingDim = count('embedding_length', MAX_DIM);
  const numHeads = count('attention.head_count', MAX_HEADS);
  const numKvHeads = count('attention.head_count_kv', MAX_HEADS, numHeads);
  const defaultHeadDim = Math.floor(embeddingDim / numHeads);
  const headDim = count('attention.key_length', MAX_HEAD_DIM, defaultHeadDim);
  const valueDim = count('attention.value_length', MAX_HEAD_DIM, defaultHeadDim);
  if (headDim !== valueDim) {
    throw new RuvLLMError(
      'unsupported',
      `${architecture}: a key size of ${headDim} with a value size of ${valueDim} is not supported`,
      {
        data: { keyLength: headDim, valueLength: valueDim },
      },
    );
  }
  if (numHeads % numKvHeads !== 0 || headDim % 2 !== 0) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${architecture}: ${numHeads} heads of ${headDim} over ${numKvHeads} key/value heads do not divide evenly`,
      { data: { numHeads, numKvHeads, headDim } },
    );
  }
  return {
    architecture,
    isCausal: gguf.metadata.boolean(`${architecture}.attention.causal`, true),
    numLayers,
    embeddingDim,
    numHeads,
    numKvHeads,
    headDim,
    feedForwardDim: count('feed_forward_length', MAX_DIM),
    // Tokens index the table; the tokenizer may have fewer than its padded size.
    vocabSize: gguf.tensor('token_embd.weight').dims[1] ?? 1,
    contextLength: count('context_length', MAX_CONTEXT),
  };
}

/** A whole number from 1 to `max`; accepts a list with one entry per layer if all are equal. */
export function readCount(metadata: Metadata, key: string, max: number, defaultValue?: number): number {
  const isList = ArrayBuffer.isView(metadata.get(key));
  const values = isList ? Array.from(metadata.numbers(key)) : [metadata.number(key, defaultValue)];
  const value = values[0] ?? 0;
  if (values.some((other) => other !== value)) {
    throw new RuvLLMError('unsupported', `metadata key "${key}" differs between layers (${values.join(', ')})`, {
      data: { key },
    });
  }
  if (!Number.isSafeInteger(value) || value < 1 || value > max) {
    throw new RuvLLMError('invalid_model_file', `metadata key "${key}" is ${value}, must be from 1 to ${max}`, {
      data: { key, value, max },
    });
  }
  return value;
}

function refuseExperts(gguf: GgufFile, architecture: string): void {
  const name = [...gguf.tensors.keys()].find((name) => /_(ch)?exps\.|ffn_gate_inp\./.test(name));
  if (name === undefined) return;
  throw new RuvLLMError('unsupported', `${architecture}: mixture of experts is not supported (tensor ${name})`, {
    data: { architecture, tensor: name },
  });
}
