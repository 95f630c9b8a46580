import { RuvLLMError } from '../core/errors.ts';
import type { Metadata } from '../gguf/index.ts';
import { readCount } from './read-count.ts';
import type { LatentShape } from './types.ts';

const MAX_DIM = 2 ** 20;
const MAX_HEAD_DIM = 1024;

/** The dimensions of multi-head latent attention; null: the file has keys and values per head. */
export function readLatentShape(metadata: Metadata, architecture: string): LatentShape | null {
  const key = (name: string): string => `${architecture}.${name}`;
  if (metadata.get(key('attention.kv_lora_rank')) === undefined) return null;
  const count = (name: string, max: number): number => readCount(metadata, key(name), max);
  // Files with matrices for each head also have the dimensions of cached rows, under the plain names.
  const sizeOf = (part: 'key' | 'value'): number => {
    const ofHead = `attention.${part}_length_mla`;
    return count(metadata.get(key(ofHead)) === undefined ? `attention.${part}_length` : ofHead, MAX_HEAD_DIM);
  };
  const rank = count('attention.kv_lora_rank', MAX_HEAD_DIM);
  const rotaryDim = count('rope.dimension_count', MAX_HEAD_DIM);
  const [keyDim, valueDim] = [sizeOf('key'), sizeOf('value')];
  if (keyDim <= rotaryDim || rotaryDim % 2 !== 0) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${architecture}: keys of ${keyDim} values with ${rotaryDim} rotated ones; an even number below the size is required`,
      { data: { keyDim, rotaryDim } },
    );
  }
  const hasQueryRank = metadata.number(key('attention.q_lora_rank'), 0) !== 0;
  const queryRank = hasQueryRank ? count('attention.q_lora_rank', MAX_DIM) : 0;
  return { rank, queryRank, rotaryDim, plainDim: keyDim - rotaryDim, valueDim };
}
