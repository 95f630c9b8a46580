import { appendAsBytes, byteOfSpelling, readByteTokens, SPACE_MARK, unmarkedBytes } from './byte-tokens.ts';
import { createMerger, type MergeRules } from './merger.ts';
import type { TextCodec, TokenizerModel } from './text-codec.ts';
import { readScores, textToken, TOKEN, type Vocabulary } from './vocabulary.ts';
import { createWordCache } from './word-cache.ts';

const SPACE_UNIT = SPACE_MARK.charCodeAt(0);

interface VocabularyShape {
  maxTokenLength: number;
  /** Characters (UTF-16 units) that precede a space mark inside some token. */
  unitsBeforeSpace: Set<number>;
}

/**
 * A join requires that its result is a token, so where no token contains "x▁" nothing joins across x and ▁: the text
 * can be split there and the parts encoded and cached separately, with the same result.
 */
function readShape({ texts }: Vocabulary): VocabularyShape {
  const shape: VocabularyShape = { maxTokenLength: 0, unitsBeforeSpace: new Set() };
  for (const text of texts) {
    if (text.length > shape.maxTokenLength) shape.maxTokenLength = text.length;
    for (let at = text.indexOf(SPACE_MARK, 1); at > 0; at = text.indexOf(SPACE_MARK, at + 1)) {
      shape.unitsBeforeSpace.add(text.charCodeAt(at - 1));
    }
  }
  shape.unitsBeforeSpace.add(SPACE_UNIT);
  return shape;
}

function createEncoder(
  vocabulary: Vocabulary,
  scores: ArrayLike<number>,
  unknownId: number | null,
): (text: string, ids: number[]) => void {
  const { maxTokenLength, unitsBeforeSpace } = readShape(vocabulary);
  const byteTokens = readByteTokens(vocabulary);
  const merger = createMerger();
  const cache = createWordCache();
  let segment = '';
  const rules: MergeRules = {
    find(left, right) {
      const start = merger.starts[left]!;
      const end = merger.ends[right]!;
      return end - start > maxTokenLength ? -1 : textToken(vocabulary, segment.slice(start, end));
    },
    priority: (id) => -scores[id]!,
    result: (id) => id,
  };

  const encodeSegment = (text: string, ids: number[]): void => {
    segment = text;
    merger.reset(text.length);
    let count = 0;
    for (let at = 0; at < text.length; count++) {
      merger.starts[count] = at;
      at += text.codePointAt(at)! > 0xffff ? 2 : 1;
      merger.ends[count] = at;
      merger.symbols[count] = -1;
    }
    merger.run(count, rules);
    for (let i = 0; i >= 0; i = merger.next(i)) {
      const joined = merger.symbols[i]!;
      if (joined >= 0) {
        ids.push(joined);
        continue;
      }
      const character = text.slice(merger.starts[i], merger.ends[i]);
      const id = textToken(vocabulary, character);
      if (id >= 0) ids.push(id);
      else appendAsBytes(character, byteTokens, unknownId, ids);
    }
    segment = '';
  };

  return (text, ids) => {
    let start = 0;
    for (let at = text.indexOf(SPACE_MARK, 1); at > 0; at = text.indexOf(SPACE_MARK, at + 1)) {
      if (unitsBeforeSpace.has(text.charCodeAt(at - 1))) continue;
      cache.append(text.slice(start, at), ids, encodeSegment);
      start = at;
    }
    if (start < text.length) cache.append(start === 0 ? text : text.slice(start), ids, encodeSegment);
  };
}

/** SentencePiece BPE: joins the pair whose result has the best score; the remainder becomes byte tokens. */
export const spm: TokenizerModel = {
  kind: 'spm',
  defaults: () => ({
    bosId: 1,
    eosId: 2,
    unknownId: 0,
    separatorId: null,
    addBos: true,
    addEos: false,
    isFramed: false,
  }),
  createCodec(metadata, vocabulary, { unknownId }): TextCodec {
    const hasSpacePrefix = metadata.boolean('tokenizer.ggml.add_space_prefix', true);
    const scores = readScores(metadata, vocabulary.texts.length);
    let encode: ((text: string, ids: number[]) => void) | null = null;
    return {
      hasSpacePrefix,
      encode(text, isAfterSpecial, ids) {
        encode ??= createEncoder(vocabulary, scores, unknownId);
        encode((hasSpacePrefix && isAfterSpecial ? ` ${text}` : text).replaceAll(' ', SPACE_MARK), ids);
      },
      tokenBytes(id) {
        const text = vocabulary.texts[id]!;
        const bits = vocabulary.attributes[id]!;
        const byte = (bits & TOKEN.byte) === 0 ? -1 : byteOfSpelling(text);
        return byte >= 0 ? Uint8Array.of(byte) : unmarkedBytes(text);
      },
    };
  },
};
