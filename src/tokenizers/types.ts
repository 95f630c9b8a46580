/** The families of vocabularies. */
export type TokenizerKind = 'spm' | 'bpe' | 'wordpiece';

/** How text becomes ids. */
export interface EncodeOptions {
  /** Adds BOS/EOS (CLS/SEP for wordpiece) as the file asks. Default false. */
  addSpecial?: boolean;
  /** The text goes on behind ordinary tokens: vocabularies that put a space before the first word do not. Default false. */
  isContinuation?: boolean;
}

/** How the text of a rendered template becomes ids. */
export interface EncodeTemplateOptions extends EncodeOptions {
  /**
   * One character that the chat renderer puts inside spellings that came from users: it breaks the match, then
   * disappears. Refused when a special token's own spelling contains it. Default: none.
   */
  guard?: string;
}

/** How ids become text. */
export interface DecodeOptions {
  /** Leaves control and unknown tokens out. Default true. */
  skipSpecial?: boolean;
  /**
   * Vocabularies that put a space before the first word lose that space again when decoded; keep it when the ids
   * continue a text that is already there. Default false.
   */
  keepLeadingSpace?: boolean;
}

/** Text to token ids and back, built from a model file's vocabulary. */
export interface Tokenizer {
  readonly kind: TokenizerKind;
  readonly vocabSize: number;
  readonly bosId: number | null;
  readonly eosId: number | null;
  /** Whether `addSpecial` puts a token before (BOS, CLS) and after (EOS, SEP) the text. */
  readonly addsBos: boolean;
  readonly addsEos: boolean;

  /** Untrusted text: a control token's spelling inside it stays text. Lone surrogates are an `invalid_text`. */
  encode(text: string, options?: EncodeOptions): number[];
  /** Trusted template text: spellings of special tokens become those tokens. */
  encodeTemplate(text: string, options?: EncodeTemplateOptions): number[];

  /** Bytes of invalid UTF-8 become U+FFFD. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** Decodes token by token; holds back bytes until they are whole characters. */
  createStreamDecoder(options?: DecodeOptions): StreamDecoder;

  /** The raw bytes a token stands for in running text; none for control and unknown tokens. */
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

/** Turns ids into text one by one, never half a character. */
export interface StreamDecoder {
  /** The text that became complete with this token; often empty in the middle of a character. */
  push(id: number): string;
  /** What is left at the end, broken bytes as U+FFFD. */
  flush(): string;
}
