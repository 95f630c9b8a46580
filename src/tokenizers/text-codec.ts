import type { Metadata } from '../gguf/types.ts';
import type { SpecialDefaults, SpecialTokens } from './special-tokens.ts';
import type { TokenizerKind } from './types.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Turns text without special tokens into ids, and an ordinary token into its bytes. */
export interface TextCodec {
  /** Appends the ids of `text`; `isAfterSpecial` says that it starts the input or follows a special token. */
  encode(text: string, isAfterSpecial: boolean, ids: number[]): void;
  tokenBytes(id: number): Uint8Array;
  /** Whether encoding put a space before the first word, so that decoding takes one away. */
  readonly hasSpacePrefix: boolean;
}

/** One tokenizer family, as `tokenizer.ggml.model` names it. */
export interface TokenizerModel {
  readonly kind: TokenizerKind;
  defaults(metadata: Metadata): SpecialDefaults;
  createCodec(metadata: Metadata, vocabulary: Vocabulary, specialTokens: SpecialTokens): TextCodec;
}
