/** Text to token ids and back, built from a model file's vocabulary. */
export interface Tokenizer {
  readonly kind: 'spm' | 'bpe' | 'wordpiece';
  readonly vocabSize: number;
  readonly bosId: number | null;
  readonly eosId: number | null;
  /** Whether the file asks for BOS before (and EOS after) plain text. */
  readonly addsBos: boolean;
  readonly addsEos: boolean;

  /**
   * Untrusted text: a control token's spelling inside it stays text. `addSpecial` (default false) adds BOS/EOS as the
   * file asks.
   */
  encode(text: string, options?: { addSpecial?: boolean }): number[];
  /**
   * Trusted template text: spellings of special tokens become those tokens. `guard` is one character that the chat
   * renderer puts inside spellings that came from users: it breaks the match, then disappears.
   */
  encodeTemplate(text: string, options?: { addSpecial?: boolean; guard?: string }): number[];

  /** Bytes of invalid UTF-8 become U+FFFD. `skipSpecial` (default true) leaves control tokens out. */
  decode(ids: readonly number[], options?: { skipSpecial?: boolean }): string;
  /** Decodes token by token; holds back bytes until they are whole characters. */
  createStreamDecoder(options?: { skipSpecial?: boolean }): StreamDecoder;

  /** The raw bytes a token stands for in running text. */
  tokenBytes(id: number): Uint8Array;
  /** The token as the vocabulary spells it, for people to look at. */
  piece(id: number): string;
  /** Id of a token by its exact vocabulary spelling. */
  idOf(piece: string): number | null;
  isControl(id: number): boolean;
  /** EOS, EOT and the other tokens after which a model has nothing more to say. */
  isEndOfGeneration(id: number): boolean;
  /** Spellings that `encodeTemplate` turns into special tokens. */
  readonly specialSpellings: readonly string[];
}

export interface StreamDecoder {
  /** The text that became complete with this token; often empty in the middle of a character. */
  push(id: number): string;
  /** What is left at the end, broken bytes as U+FFFD. */
  flush(): string;
}
