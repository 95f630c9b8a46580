import type { Metadata } from '../gguf/types.ts';
import { SPACE_MARK, unmarkedBytes } from './byte-tokens.ts';
import type { TextCodec, TokenizerModel } from './text-codec.ts';
import { textToken, type Vocabulary } from './vocabulary.ts';
import { createWordCache } from './word-cache.ts';

interface NormalizerOptions {
  readonly isLowercase: boolean;
  readonly stripsAccents: boolean;
}

const SPACE = /\p{White_Space}/u;
// Control, format, private use and surrogates, but not unassigned code points.
const DROPPED = /[\p{Cc}\p{Cf}\p{Co}\0\ufffd]/u;
const MARK = /\p{M}/u;
// Punctuation, ASCII symbols, and ideographs (the gap at U+2B820 is the original's).
const ALONE =
  /[\p{P}$+<=>^`|~\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/u;

/** Only the first code point of a decomposition: marks are dropped next, and llama.cpp keeps no more. */
function firstOf(text: string): string {
  return String.fromCodePoint(text.codePointAt(0)!);
}

/** Normalized words, each with the vocabulary's space mark in front. */
function splitWords(text: string, { isLowercase, stripsAccents }: NormalizerOptions): string[] {
  const words: string[] = [];
  // Joined once per word: a megabyte word grown by += is a rope that each slice walks again.
  let characters: string[] = [];
  const finish = (): void => {
    if (characters.length > 0) words.push(SPACE_MARK + characters.join(''));
    characters = [];
  };
  for (const original of text) {
    const character = stripsAccents && original > '\u007f' ? firstOf(original.normalize('NFD')) : original;
    if (SPACE.test(character)) {
      finish();
      continue;
    }
    if (DROPPED.test(character) || (stripsAccents && MARK.test(character))) continue;
    const isAlone = ALONE.test(character);
    if (isAlone) finish();
    characters.push(isLowercase ? firstOf(character.toLowerCase()) : character);
    if (isAlone) finish();
  }
  finish();
  return words;
}

function readNormalizer(metadata: Metadata): NormalizerOptions {
  const isLowercase = metadata.boolean('tokenizer.ggml.normalizer.lowercase', true);
  return { isLowercase, stripsAccents: metadata.boolean('tokenizer.ggml.normalizer.strip_accents', isLowercase) };
}

function createEncoder(
  vocabulary: Vocabulary,
  normalizer: NormalizerOptions,
  unknownId: number | null,
): (text: string, ids: number[]) => void {
  let maxTokenLength = 0;
  for (const text of vocabulary.texts) if (text.length > maxTokenLength) maxTokenLength = text.length;
  const cache = createWordCache();

  const longestAt = (word: string, start: number): number => {
    for (let end = Math.min(word.length, start + maxTokenLength); end > start; end--) {
      const id = textToken(vocabulary, word.slice(start, end));
      if (id >= 0) return id;
    }
    return -1;
  };
  const encodeWord = (word: string, ids: number[]): void => {
    const numBefore = ids.length;
    for (let start = 0; start < word.length;) {
      const id = longestAt(word, start);
      if (id < 0) {
        ids.length = numBefore; // a word with an unknown part is unknown as a whole
        if (unknownId !== null) ids.push(unknownId);
        return;
      }
      ids.push(id);
      start += vocabulary.texts[id]!.length;
    }
  };
  return (text, ids) => {
    for (const word of splitWords(text, normalizer)) cache.append(word, ids, encodeWord);
  };
}

/** WordPiece: normalized words, each cut greedily into the longest tokens from the left. */
export const wordpiece: TokenizerModel = {
  kind: 'wordpiece',
  defaults: () => ({
    bosId: 101,
    eosId: null,
    unknownId: 100,
    separatorId: 102,
    addBos: true,
    addEos: false,
    isFramed: true,
  }),
  createCodec(metadata, vocabulary, { unknownId }): TextCodec {
    const normalizer = readNormalizer(metadata);
    let encode: ((text: string, ids: number[]) => void) | null = null;
    return {
      hasSpacePrefix: true,
      encode(text, _isAfterSpecial, ids) {
        encode ??= createEncoder(vocabulary, normalizer, unknownId);
        encode(text, ids);
      },
      tokenBytes: (id) => unmarkedBytes(vocabulary.texts[id]!),
    };
  },
};
