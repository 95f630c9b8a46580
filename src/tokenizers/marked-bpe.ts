import { appendAsBytes, byteOfSpelling, readByteTokens, SPACE_MARK, unmarkedBytes } from './byte-tokens.ts';
import { createMergeTable } from './merge-table.ts';
import { createMerger, type MergeRules } from './merger.ts';
import type { TextCodec, TokenizerModel } from './text-codec.ts';
import { textToken, TOKEN, type Vocabulary } from './vocabulary.ts';
import { createWordCache } from './word-cache.ts';

/** Runs of line feeds, and the text between them. */
const LINES = /\n+|[^\n]+/g;

function createEncoder(vocabulary: Vocabulary, merges: readonly string[]): (text: string, ids: number[]) => void {
  const table = createMergeTable(vocabulary, merges);
  const byteTokens = readByteTokens(vocabulary);
  const vocabSize = vocabulary.texts.length;
  const merger = createMerger();
  const cache = createWordCache();
  const rules: MergeRules = {
    find: (left, right) => table.find(merger.symbols[left]!, merger.symbols[right]!),
    priority: (rank) => rank,
    result: (rank) => table.resultOf(rank),
  };

  const encodeLine = (line: string, ids: number[]): void => {
    // A run of line feeds that is a token stays whole, even if the merges would not build it.
    const whole = line.startsWith('\n') ? textToken(vocabulary, line) : -1;
    if (whole >= 0) {
      ids.push(whole);
      return;
    }
    merger.reset(line.length);
    let count = 0;
    for (const character of line) {
      merger.symbols[count] = table.symbolOf(character);
      merger.starts[count] = count;
      merger.ends[count] = ++count;
    }
    merger.run(count, rules);
    for (let i = 0; i >= 0; i = merger.next(i)) {
      const symbol = merger.symbols[i]!;
      if (symbol < vocabSize) ids.push(symbol);
      else for (const character of table.textOf(symbol)) appendAsBytes(character, byteTokens, null, ids);
    }
  };

  return (text, ids) => {
    for (const line of text.replaceAll(' ', SPACE_MARK).match(LINES) ?? []) cache.append(line, ids, encodeLine);
  };
}

/** BPE over characters with marked spaces: merges by rank, and characters without a token become byte tokens. */
export const markedBpe: TokenizerModel = {
  kind: 'bpe',
  // Gemma 4's files add a BOS even if they do not say so.
  defaults: () => ({
    bosId: null,
    eosId: null,
    unknownId: null,
    separatorId: null,
    addBos: true,
    addEos: false,
    isFramed: false,
  }),
  createCodec(metadata, vocabulary): TextCodec {
    const merges = metadata.strings('tokenizer.ggml.merges');
    let encode: ((text: string, ids: number[]) => void) | null = null;
    return {
      hasSpacePrefix: false,
      encode(text, _isAfterSpecial, ids) {
        encode ??= createEncoder(vocabulary, merges);
        encode(text, ids);
      },
      tokenBytes(id) {
        const text = vocabulary.texts[id]!;
        const byte = (vocabulary.attributes[id]! & TOKEN.byte) === 0 ? -1 : byteOfSpelling(text);
        return byte >= 0 ? Uint8Array.of(byte) : unmarkedBytes(text);
      },
    };
  },
};
