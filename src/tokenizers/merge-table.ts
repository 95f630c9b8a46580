import { invalidVocabulary, textToken, type Vocabulary } from './vocabulary.ts';

/** Ranked merges over symbols: a token id, or a number past the vocabulary for a spelling that is no token. */
export interface MergeTable {
  symbolOf(text: string): number;
  textOf(symbol: number): string;
  /** Rank of the merge of two symbols, or -1. */
  find(left: number, right: number): number;
  resultOf(rank: number): number;
}

// Far above the largest known list (about 500 000); more is a broken or hostile file.
const MAX_MERGES = 8_000_000;

export function createMergeTable(vocabulary: Vocabulary, merges: readonly string[]): MergeTable {
  if (merges.length > MAX_MERGES) throw invalidVocabulary(`${merges.length} merges, at most ${MAX_MERGES}`);
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

  // Open addressing, at most half full. Slots hold rank + 1, so that 0 is empty; the pair stands in lefts and rights.
  const numSlots = 2 ** Math.ceil(Math.log2(2 * merges.length + 2));
  const mask = numSlots - 1;
  const slots = new Int32Array(numSlots);
  const lefts = new Int32Array(merges.length);
  const rights = new Int32Array(merges.length);
  const results = new Int32Array(merges.length);
  const slotOf = (left: number, right: number): number => {
    let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca77);
    hash ^= hash >>> 15;
    let slot = hash & mask;
    for (;;) {
      const rank = slots[slot]! - 1;
      if (rank < 0 || (lefts[rank] === left && rights[rank] === right)) return slot;
      slot = (slot + 1) & mask;
    }
  };
  for (let rank = 0; rank < merges.length; rank++) {
    const merge = merges[rank]!;
    // From the second character on: the left part may itself be a space.
    const space = merge.indexOf(' ', 1);
    if (space < 0) continue;
    const leftText = merge.slice(0, space);
    const rightText = merge.slice(space + 1);
    const left = symbolOf(leftText);
    const right = symbolOf(rightText);
    const slot = slotOf(left, right);
    if (slots[slot] !== 0) continue; // a pair listed twice keeps its first rank
    lefts[rank] = left;
    rights[rank] = right;
    results[rank] = symbolOf(leftText + rightText);
    slots[slot] = rank + 1;
  }
  return {
    symbolOf,
    textOf: (symbol) => (symbol < vocabSize ? vocabulary.texts[symbol]! : extraTexts[symbol - vocabSize]!),
    find: (left, right) => slots[slotOf(left, right)]! - 1,
    resultOf: (rank) => results[rank]!,
  };
}
