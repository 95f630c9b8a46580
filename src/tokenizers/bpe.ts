import { RuvLLMError } from '../core/errors.ts';
import type { Metadata } from '../gguf/types.ts';
import { BYTE_CHARACTERS, bytesOfSpelling } from './byte-alphabet.ts';
import { createMergeTable } from './merge-table.ts';
import { createMerger, type MergeRules } from './merger.ts';
import { PRE_TOKENIZERS, type PreTokenizer } from './pre-tokenizers.ts';
import type { TextCodec, TokenizerModel } from './text-codec.ts';
import { textToken, TOKEN, type Vocabulary } from './vocabulary.ts';
import { createWordCache } from './word-cache.ts';
import { createWordSplitter } from './word-splitter.ts';

const textEncoder = new TextEncoder();

function findPreTokenizer(metadata: Metadata): PreTokenizer {
  const name = metadata.string('tokenizer.ggml.pre', 'default') || 'default';
  const preTokenizer = PRE_TOKENIZERS.find(({ names }) => names.includes(name));
  if (preTokenizer !== undefined) return preTokenizer;
  const supported = PRE_TOKENIZERS.flatMap(({ names }) => names);
  throw new RuvLLMError('unsupported', `pre-tokenizer "${name}" is not supported (known: ${supported.join(', ')})`, {
    data: { preTokenizer: name },
  });
}

function createEncoder(
  vocabulary: Vocabulary,
  merges: readonly string[],
  preTokenizer: PreTokenizer,
): (text: string, ids: number[]) => void {
  const splitWords = createWordSplitter(preTokenizer.patterns);
  const table = createMergeTable(vocabulary, merges);
  const byteSymbols = Int32Array.from(BYTE_CHARACTERS, (character) => table.symbolOf(character));
  const ignoresMerges = preTokenizer.ignoresMerges === true;
  const vocabSize = vocabulary.texts.length;
  const merger = createMerger();
  const cache = createWordCache();
  const rules: MergeRules = {
    find: (left, right) => table.find(merger.symbols[left]!, merger.symbols[right]!),
    priority: (rank) => rank,
    result: (rank) => table.resultOf(rank),
  };

  const encodeWord = (word: string, ids: number[]): void => {
    const bytes = textEncoder.encode(word);
    if (ignoresMerges) {
      let spelling = '';
      for (const byte of bytes) spelling += BYTE_CHARACTERS[byte]!;
      const id = textToken(vocabulary, spelling);
      if (id >= 0) {
        ids.push(id);
        return;
      }
    }
    merger.reset(bytes.length);
    const { symbols, starts, ends } = merger;
    for (let i = 0; i < bytes.length; i++) {
      symbols[i] = byteSymbols[bytes[i]!]!;
      starts[i] = i;
      ends[i] = i + 1;
    }
    merger.run(bytes.length, rules);
    for (let i = 0; i >= 0; i = merger.next(i)) {
      const symbol = symbols[i]!;
      if (symbol < vocabSize) ids.push(symbol);
      else appendSpelledOut(table.textOf(symbol), ids);
    }
  };

  /** Spells out a merge result missing from the vocabulary by character; only ASCII characters can be tokens. */
  const appendSpelledOut = (text: string, ids: number[]): void => {
    for (const character of text) {
      const id = character < '\u0080' ? textToken(vocabulary, character) : -1;
      if (id >= 0) ids.push(id);
    }
  };

  return (text, ids) => {
    for (const word of splitWords(text)) cache.append(word, ids, encodeWord);
  };
}

/** Byte-level BPE: splits words by regular expression, then merges byte symbols by rank. */
export const bpe: TokenizerModel = {
  kind: 'bpe',
  defaults(metadata) {
    const { addsBos, hasNoBos } = findPreTokenizer(metadata);
    return {
      bosId: hasNoBos === true ? null : 11,
      eosId: 11,
      unknownId: null,
      separatorId: null,
      addBos: addsBos === true,
      addEos: false,
      isFramed: false,
    };
  },
  createCodec(metadata, vocabulary): TextCodec {
    const preTokenizer = findPreTokenizer(metadata);
    const merges = metadata.strings('tokenizer.ggml.merges');
    let encode: ((text: string, ids: number[]) => void) | null = null;
    return {
      hasSpacePrefix: false,
      encode(text, _isAfterSpecial, ids) {
        encode ??= createEncoder(vocabulary, merges, preTokenizer);
        encode(text, ids);
      },
      tokenBytes(id) {
        const text = vocabulary.texts[id]!;
        const isLiteral = (vocabulary.attributes[id]! & TOKEN.userDefined) !== 0;
        return isLiteral ? textEncoder.encode(text) : bytesOfSpelling(text);
      },
    };
  },
};
