import type { TokenVocabulary } from './types.ts';

/** A tokenizer's tokens as plain data. */
export interface VocabularyData {
  /** The bytes of all tokens, concatenated; token i is [offsets[i], offsets[i + 1]); for control tokens the spelling. */
  readonly bytes: Uint8Array;
  readonly offsets: Int32Array;
  /** 1: a control token. */
  readonly isControl: Uint8Array;
  readonly endIds: readonly number[];
}

export function openVocabulary({ bytes, offsets, isControl, endIds }: VocabularyData): TokenVocabulary {
  return {
    size: isControl.length,
    bytes: (id) => bytes.subarray(offsets[id]!, offsets[id + 1]!),
    isControl: (id) => isControl[id] === 1,
    endIds,
  };
}
