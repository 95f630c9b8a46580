import type { Metadata } from '../gguf/types.ts';
import type { SpecialDefaults, SpecialTokens } from './special-tokens.ts';
import type { TokenizerKind } from './types.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Encodes text without special tokens, and decodes ordinary tokens. */
export interface TextCodec {
  /** Appends the ids of `text`; `isAfterSpecial`: it starts the input or follows a special token. */
  encode(text: string, isAfterSpecial: boolean, ids: number[]): void;
  tokenBytes(id: number): Uint8Array;
  /** Whether encoding adds a space before the first word, so that decoding removes one. */
  readonly hasSpacePrefix: boolean;
}

/** One tokenizer family, by its name in `tokenizer.ggml.model`. */
export interface TokenizerModel {
  readonly kind: TokenizerKind;
  defaults(metadata: Metadata): SpecialDefaults;
  createCodec(metadata: Metadata, vocabulary: Vocabulary, specialTokens: SpecialTokens): TextCodec;
}
