import { invalidVocabulary, textToken, type Vocabulary } from './vocabulary.ts';

/** Ranked merges over symbols: token ids, or numbers past the vocabulary for spellings that are not tokens. */
export interface MergeTable {
  symbolOf(text: string): number;
  textOf(symbol: number): string;
  /** Rank of the merge of two symbols, or -1. */
  find(left: number, right: number): number;
  resultOf(rank: number): number;
}

// Far above the largest existing list (about 500,000); more means a broken or hostile file.
const MAX_MERGES = 8_000_000;
// Cached pairs, 12 bytes each. A full cache is cleared: unusual text may look up any number of pairs.
const MEMO_SLOTS = 1 << 18;

/**
 * Merges are looked up by text in the file's list, and results, including "none", are cached by symbol numbers:
 * converting all merges to numbers first would add a quarter of a second to every start, mostly for unused pairs.
 */
export function createMergeTable(vocabulary: Vocabulary, merges: readonly string[]): MergeTable {
  if (merges.length > MAX_MERGES) throw invalidVocabulary(`${merges.length} merges, the limit is ${MAX_MERGES}`);
  const ranks = new Map<string, number>();
  // Backwards, so that a pair listed twice keeps its first rank.
  for (let rank = merges.length - 1; rank >= 0; rank--) ranks.set(merges[rank]!, rank);

  const vocabSize = vocabulary.texts.length;
  const extraTexts: string[] = [];
  const extraSymbols = new Map<string, number>();
  const symbolOf = (text: string): number => {
    const id = textToken(vocabulary, text);
    if (id >= 0) return id;
    let symbol = extraSymbols.get(text);
    if (symbol === undefined) {
      symbol = vocabSize + extraTexts.length;
      extraSymbols.set(text, symbol);
      extraTexts.push(text);
    }
    return symbol;
  };
  const textOf = (symbol: number): string =>
    symbol < vocabSize ? vocabulary.texts[symbol]! : extraTexts[symbol - vocabSize]!;

  // Open addressing, at most half full. `memo` holds rank + 2: 0 is an empty slot, 1 a pair without a merge.
  const lefts = new Int32Array(MEMO_SLOTS);
  const rights = new Int32Array(MEMO_SLOTS);
  const memo = new Int32Array(MEMO_SLOTS);
  let numKnown = 0;
  // Symbol + 1 of each merge's result; 0: not looked up yet.
  const results = new Int32Array(merges.length);

  return {
    symbolOf,
    textOf,
    find(left, right) {
      let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca77);
      hash ^= hash >>> 15;
      let slot = hash & (MEMO_SLOTS - 1);
      while (memo[slot] !== 0) {
        if (lefts[slot] === left && rights[slot] === right) return memo[slot]! - 2;
        slot = (slot + 1) & (MEMO_SLOTS - 1);
      }
      const leftText = textOf(left);
      let rank = ranks.get(`${leftText} ${textOf(right)}`) ?? -1;
      // A merge splits at its first space after the first character: the left part may itself be a space.
      if (rank >= 0 && merges[rank]!.indexOf(' ', 1) !== leftText.length) rank = -1;
      if (++numKnown > MEMO_SLOTS / 2) {
        memo.fill(0);
        numKnown = 1;
        slot = hash & (MEMO_SLOTS - 1);
      }
      lefts[slot] = left;
      rights[slot] = right;
      memo[slot] = rank + 2;
      return rank;
    },
    resultOf(rank) {
      if (results[rank] === 0) {
        const merge = merges[rank]!;
        const space = merge.indexOf(' ', 1);
        results[rank] = symbolOf(merge.slice(0, space) + merge.slice(space + 1)) + 1;
      }
      return results[rank]! - 1;
    },
  };
}
