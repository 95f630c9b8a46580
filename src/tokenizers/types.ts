/** Tokenizer families. */
export type TokenizerKind = 'spm' | 'bpe' | 'wordpiece';

/** Options for encoding text. */
export interface EncodeOptions {
  /** Adds BOS/EOS (CLS/SEP for WordPiece) as the file specifies. Default false. */
  addSpecial?: boolean;
  /** The text continues ordinary tokens: no space is added before the first word. Default false. */
  isContinuation?: boolean;
}

/** Options for encoding a rendered template. */
export interface EncodeTemplateOptions extends EncodeOptions {
  /**
   * One character that the chat renderer puts into special spellings from users: it breaks the match, then is removed.
   * Rejected if the spelling of a special token contains it. Default: none.
   */
  guard?: string;
}

/** Options for decoding. */
export interface DecodeOptions {
  /** Omits control and unknown tokens. Default true. */
  skipSpecial?: boolean;
  /**
   * Keeps the space that some vocabularies add before the first word; use it when the ids continue an existing text.
   * Default false.
   */
  keepLeadingSpace?: boolean;
}

/** Text to token ids and back, built from a model file's vocabulary. */
export interface Tokenizer {
  readonly kind: TokenizerKind;
  readonly vocabSize: number;
  readonly bosId: number | null;
  readonly eosId: number | null;
  /** Whether `addSpecial` adds a token before (BOS, CLS) and after (EOS, SEP) the text. */
  readonly addsBos: boolean;
  readonly addsEos: boolean;

  /** Encodes untrusted text: spellings of control tokens stay text. Throws `invalid_text` for lone surrogates. */
  encode(text: string, options?: EncodeOptions): number[];
  /** Encodes trusted template text: spellings of special tokens become those tokens. */
  encodeTemplate(text: string, options?: EncodeTemplateOptions): number[];

  /** Decodes ids to text; invalid UTF-8 becomes U+FFFD. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** Decodes token by token; holds back incomplete characters. */
  createStreamDecoder(options?: DecodeOptions): StreamDecoder;

  /** The bytes of a token in running text; empty for control and unknown tokens. */
  tokenBytes(id: number): Uint8Array;
  /** The token as spelled in the vocabulary, for display. */
  piece(id: number): string;
  /** Id of a token by its exact vocabulary spelling. */
  idOf(piece: string): number | null;
  isControl(id: number): boolean;
  /** Whether the token ends generation (EOS, EOT and similar). */
  isEndOfGeneration(id: number): boolean;
  /** Tokens for filling in the middle of a text; null: the model has none. */
  readonly fillIn: FillInTokens | null;
  /** Spellings that `encodeTemplate` turns into special tokens. */
  readonly specialSpellings: readonly string[];
}

/** Tokens that mark the parts of a text whose middle is generated. */
export interface FillInTokens {
  readonly prefixId: number;
  readonly suffixId: number;
  readonly middleId: number;
  /** Before the name of the repository; null: none. */
  readonly repositoryId: number | null;
  /** Before each file; null: none. */
  readonly fileId: number | null;
}

/** Decodes ids one by one, never emitting half a character. */
export interface StreamDecoder {
  /** The text completed by this token; often empty in the middle of a character. */
  push(id: number): string;
  /** The remaining text, with invalid bytes as U+FFFD. */
  flush(): string;
}
