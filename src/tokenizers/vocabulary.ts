import { RuvLLMError } from '../core/errors.ts';
import type { Metadata } from '../gguf/types.ts';

/** Token attributes; bits, because a NORMAL token of the file can be a control token by its spelling. */
export const TOKEN = {
  unknown: 1,
  unused: 2,
  normal: 4,
  control: 8,
  userDefined: 16,
  byte: 32,
  /** White space before (after) the token in a template belongs to the token. */
  stripLeft: 64,
  stripRight: 128,
} as const;

/** Tokens without text. */
export const SILENT = TOKEN.control | TOKEN.unknown;
/** Tokens that a template may spell out. */
export const SPECIAL = SILENT | TOKEN.userDefined;

/** The file's token table. `attributes` changes only while the tokenizer is built. */
export interface Vocabulary {
  readonly texts: readonly string[];
  readonly attributes: Uint8Array;
  readonly ids: ReadonlyMap<string, number>;
}

// More means a broken or hostile file; the largest existing vocabularies have about 300,000 tokens.
const MAX_TOKENS = 4_000_000;

/** GGUF's token types 0 to 6; others count as 0, undefined. */
const TYPE_BITS = [0, TOKEN.normal, TOKEN.unknown, TOKEN.control, TOKEN.userDefined, TOKEN.unused, TOKEN.byte];

export function invalidVocabulary(message: string): RuvLLMError {
  return new RuvLLMError('invalid_model_file', `tokenizer: ${message}`);
}

export function readVocabulary(metadata: Metadata): Vocabulary {
  const texts = metadata.strings('tokenizer.ggml.tokens');
  const numTokens = texts.length;
  if (numTokens === 0 || numTokens > MAX_TOKENS) {
    throw invalidVocabulary(`${numTokens} tokens in the vocabulary, must be 1 to ${MAX_TOKENS}`);
  }
  const types = metadata.numbers('tokenizer.ggml.token_type', []);
  if (types.length !== 0 && types.length < numTokens) {
    throw invalidVocabulary(`${types.length} token types for ${numTokens} tokens`);
  }
  const attributes = new Uint8Array(numTokens);
  const ids = new Map<string, number>();
  for (let id = 0; id < numTokens; id++) {
    const text = texts[id]!;
    if (text !== '') ids.set(text, id);
    attributes[id] = types.length === 0 ? TOKEN.normal : (TYPE_BITS[types[id]!] ?? 0);
  }
  return { texts, attributes, ids };
}

/** One score per token; missing scores count as 0. */
export function readScores(metadata: Metadata, numTokens: number): ArrayLike<number> {
  const scores = metadata.numbers('tokenizer.ggml.scores', []);
  if (scores.length === 0) return new Float32Array(numTokens);
  if (scores.length < numTokens) throw invalidVocabulary(`${scores.length} scores for ${numTokens} tokens`);
  return scores;
}

/**
 * Id of a token that ordinary text may become, or -1. Text never becomes a control, unknown or byte token; otherwise a
 * user could type `<s>` or `<0x0A>` and have it obeyed.
 */
export function textToken(vocabulary: Vocabulary, text: string): number {
  const id = vocabulary.ids.get(text);
  if (id === undefined) return -1;
  return (vocabulary.attributes[id]! & (SILENT | TOKEN.byte)) === 0 ? id : -1;
}
