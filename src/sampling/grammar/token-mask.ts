import type { TextSearch } from './structure/text-search.ts';
import type { TokenTable } from './token-table.ts';
import { markControl } from './token-table.ts';
import type { CompiledGrammar, GrammarState, TokenVocabulary } from './types.ts';

/** Where a token leads; null: it may not come. An end token's spelling counts as a control token's. */
export function stepToken(
  grammar: CompiledGrammar,
  vocabulary: TokenVocabulary,
  from: GrammarState,
  id: number,
): GrammarState | null {
  const isControl = vocabulary.isControl(id) || vocabulary.endIds.includes(id);
  const bytes = vocabulary.bytes(id);
  if (bytes.length === 0 || (isControl && grammar.takesControls !== true)) return null;
  grammar.beginToken();
  let state: GrammarState | null = from;
  for (const byte of isControl ? markControl(bytes) : bytes) {
    state = grammar.step(state, byte);
    if (state === null) return null;
  }
  return state;
}

function allowRange(table: TokenTable, from: number, to: number, mask: Uint32Array): void {
  const { sorted } = table;
  for (let i = from; i < to; i++) {
    const id = sorted[i]!;
    mask[id >>> 5]! |= 1 << (id & 31);
  }
}

/** Sets the bits of all tokens that the grammar takes from this state on; the mask must be empty. */
export function fillMask(grammar: CompiledGrammar, table: TokenTable, start: GrammarState, mask: Uint32Array): void {
  const { bytes, depths, skip, first, own, below, contentBits, vocabulary } = table;
  const numNodes = grammar.takesControls === true ? table.numNodes : table.controlNode;
  // Within a string that may go on in any way, whole subtrees are known beforehand: only tokens that end it are walked.
  if (start.freeRoom > 0) allowContent(table, start, mask);
  const states: GrammarState[] = [start];
  for (let node = 1; node < numNodes;) {
    const depth = depths[node]!;
    const before = states[depth - 1]!;
    if (before.freeRoom > 0 && depth <= 32 && ((contentBits[node]! >>> (depth - 1)) & 1) === 1) {
      if (depth === 1) {
        node = skip[node]!;
        continue;
      }
      if (before.freeRoom > below[node]! && (before.avoid ?? null) === null) {
        allowRange(table, first[node]!, first[skip[node]!]!, mask);
        node = skip[node]!;
        continue;
      }
    }
    const state = grammar.step(before, bytes[node]!);
    if (state === null) {
      node = skip[node]!;
      continue;
    }
    allowRange(table, first[node]!, own[node]!, mask);
    states[depth] = state;
    node++;
  }
  const isComplete = grammar.isComplete(start);
  for (const id of vocabulary.endIds) {
    const end = isComplete ? start : stepToken(grammar, vocabulary, start, id);
    if (end !== null && grammar.isComplete(end)) mask[id >>> 5]! |= 1 << (id & 31);
  }
}

/** All tokens that are string content and fit. */
function allowContent(table: TokenTable, { freeRoom, avoid }: GrammarState, mask: Uint32Array): void {
  mask.set(table.contentMask);
  const forbid = (id: number): void => {
    mask[id >>> 5]! &= ~(1 << (id & 31));
  };
  for (let i = 0; i < table.longest.length && table.lengths[i]! > freeRoom; i++) forbid(table.longest[i]!);
  if (avoid) completionsOf(table, avoid.search, avoid.at).forEach(forbid);
}

const completions = new WeakMap<TokenTable, WeakMap<TextSearch, (Int32Array | undefined)[]>>();

/** The tokens of string content that complete the text from where its search stands. */
function completionsOf(table: TokenTable, search: TextSearch, at: number): Int32Array {
  let ofTable = completions.get(table);
  if (ofTable === undefined) completions.set(table, (ofTable = new WeakMap()));
  let known = ofTable.get(search);
  if (known === undefined) ofTable.set(search, (known = []));
  return (known[at] ??= findCompletions(table, search, at));
}

function findCompletions(table: TokenTable, search: TextSearch, from: number): Int32Array {
  const { bytes, depths, skip, first, sorted, contentMask } = table;
  const ids: number[] = [];
  const places = [from];
  for (let node = 1; node < table.controlNode;) {
    const place = search.next(places[depths[node]! - 1]!, bytes[node]!);
    if (place < search.bytes.length) {
      places[depths[node]!] = place;
      node++;
      continue;
    }
    for (let i = first[node]!; i < first[skip[node]!]!; i++) {
      const id = sorted[i]!;
      if (((contentMask[id >>> 5]! >>> (id & 31)) & 1) === 1) ids.push(id);
    }
    node = skip[node]!;
  }
  return Int32Array.from(ids);
}
