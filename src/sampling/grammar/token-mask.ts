import type { TextSearch } from './structure/text-search.ts';
import { allowTokens } from './automaton-walk.ts';
import type { Fuel } from './limits.ts';
import { createMaskCache, type MaskCache } from './mask-cache.ts';
import { allowNumberContent, numberContentKey, type NumberContent } from './number-content.ts';
import { walkRecurring } from './recurring-walk.ts';
import { childOf } from './spell-bytes.ts';
import { allowStringContent, type StringContent } from './string-content.ts';
import type { TokenTable } from './token-table.ts';
import type { TokenTrie } from './token-trie.ts';
import { markControl } from './token-table.ts';
import type { CompiledGrammar, GrammarState, TokenVocabulary } from './types.ts';

/** The state after a token; null: not allowed. An end token's spelling counts like a control token's. */
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

/** Sets the bits of all tokens allowed in this state; the mask must be empty. */
export function fillMask(grammar: CompiledGrammar, table: TokenTable, start: GrammarState, mask: Uint32Array): void {
  const { vocabulary } = table;
  const contents = grammar.contentsOf?.(start) ?? null;
  const numNodes = grammar.takesControls === true ? table.numNodes : table.controlNode;
  // Inside a string with free content, whole subtrees are known beforehand: only tokens that end it are walked.
  if (start.freeRoom > 0) allowContent(grammar, table, start, mask);
  if (start.taken && start.freeRoom >= table.maxBeforeQuote) {
    // The content does not affect what follows the quote: only that is walked, each way once.
    walk(grammar, table.quotes, table.quotes.numNodes, start, mask);
    for (const tail of start.taken) forbidName(table, tail, mask);
    walk(grammar, table.escapedQuotes, table.escapedQuotes.numNodes, start, mask);
  } else if (contents !== null && contents.strings !== null) {
    for (const content of contents.strings) addStringContent(table, content, mask);
    walk(grammar, table.withQuote, table.withQuote.numNodes, start, mask);
  } else if (contents !== null) {
    for (const content of contents.numbers) addNumbers(table, content, false, contents.fuel, mask);
    for (const content of contents.spacedNumbers) addNumbers(table, content, true, contents.fuel, mask);
    // Indent may come before a number, too: then these tokens are walked.
    const maxKind = contents.spacedNumbers.length > 0 ? 2 : 1;
    walk(grammar, table, numNodes, start, mask, { kinds: table.numericKind, maxKind });
  } else if (start.isRecurring !== true || !walkRecurring(grammar, table, numNodes, start, mask)) {
    walk(grammar, table, numNodes, start, mask);
  }
  const isComplete = grammar.isComplete(start);
  for (const id of vocabulary.endIds) {
    const end = isComplete ? start : stepToken(grammar, vocabulary, start, id);
    if (end !== null && grammar.isComplete(end)) mask[id >>> 5]! |= 1 << (id & 31);
  }
}

/** Bytes of cached content per vocabulary. */
const CONTENT_BYTES = 8 << 20;
const contentCaches = new WeakMap<TokenTable, MaskCache>();

/** Adds tokens that do not depend on what is around a string or number. */
function addCached(table: TokenTable, key: string, mask: Uint32Array, fill: (tokens: Uint32Array) => void): void {
  let cache = contentCaches.get(table);
  if (cache === undefined) contentCaches.set(table, (cache = createMaskCache()));
  let tokens = cache.get(key);
  if (tokens === undefined) {
    fill((tokens = new Uint32Array(mask.length)));
    cache.add(key, tokens, CONTENT_BYTES);
  }
  for (let word = 0; word < mask.length; word++) mask[word]! |= tokens[word]!;
}

function addStringContent(table: TokenTable, content: StringContent, mask: Uint32Array): void {
  addCached(table, content.key, mask, (tokens) => allowStringContent(table, table.controlNode, content, tokens));
}

function addNumbers(table: TokenTable, content: NumberContent, isSpaced: boolean, fuel: Fuel, mask: Uint32Array): void {
  const trie = isSpaced ? table.spacedNumeric : table.numeric;
  const key = `${isSpaced ? ' ' : ''}${numberContentKey(content)}`;
  addCached(table, key, mask, (tokens) => allowNumberContent(trie, content, fuel, tokens));
}

function walk(
  grammar: CompiledGrammar,
  trie: TokenTrie,
  numNodes: number,
  start: GrammarState,
  mask: Uint32Array,
  skipped: { readonly kinds: Uint8Array; readonly maxKind: number } | null = null,
): void {
  const { bytes, depths, skip, first, own, sorted, below, contentBits } = trie;
  const states: GrammarState[] = [start];
  for (let node = 1; node < numNodes;) {
    const kind = skipped === null ? 0 : skipped.kinds[node]!;
    if (kind > 0 && kind <= skipped!.maxKind) {
      node = skip[node]!;
      continue;
    }
    const depth = depths[node]!;
    const before = states[depth - 1]!;
    if (before.freeRoom > 0 && depth <= 32 && ((contentBits[node]! >>> (depth - 1)) & 1) === 1) {
      // Those of the start were found before.
      if (depth === 1 && (before.endsAtRoom === true || before.freeRoom > below[node]!)) {
        node = skip[node]!;
        continue;
      }
      if (before.freeRoom > below[node]! && (before.avoid ?? null) === null && (before.fillers ?? null) === null) {
        allowTokens(sorted, first[node]!, first[skip[node]!]!, mask);
        node = skip[node]!;
        continue;
      }
    }
    const state = grammar.step(before, bytes[node]!);
    if (state === null) {
      node = skip[node]!;
      continue;
    }
    allowTokens(sorted, first[node]!, own[node]!, mask);
    states[depth] = state;
    node++;
  }
}

/** For names that must not repeat: the tokens that would end them. */
function forbidName(table: TokenTable, tail: Uint8Array, mask: Uint32Array): void {
  let node = 0;
  for (const byte of tail) {
    node = childOf(table, node, byte);
    if (node < 0) return;
  }
  node = childOf(table, node, 0x22);
  if (node < 0) return;
  for (let i = table.first[node]!; i < table.first[table.skip[node]!]!; i++) {
    const id = table.sorted[i]!;
    mask[id >>> 5]! &= ~(1 << (id & 31));
  }
}

/** All tokens that are string content and fit. */
function allowContent(grammar: CompiledGrammar, table: TokenTable, start: GrammarState, mask: Uint32Array): void {
  const { freeRoom, avoid, fillers } = start;
  mask.set(table.contentMask);
  const forbid = (id: number): void => {
    mask[id >>> 5]! &= ~(1 << (id & 31));
  };
  for (let i = 0; i < table.longest.length && table.lengths[i]! > freeRoom; i++) forbid(table.longest[i]!);
  if (avoid) completionsOf(table, avoid.search, avoid.at).forEach(forbid);
  for (const filler of fillers ?? []) {
    let node = 0;
    for (const byte of filler) {
      node = childOf(table, node, byte);
      if (node < 0) break;
      const ids = table.sorted.subarray(table.first[node]!, table.own[node]!);
      if (ids.length > 0 && stepToken(grammar, table.vocabulary, start, ids[0]!) === null) ids.forEach(forbid);
    }
  }
}

const completions = new WeakMap<TokenTable, WeakMap<TextSearch, (Int32Array | undefined)[]>>();

/** The tokens of string content that complete the forbidden text from its current place. */
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
