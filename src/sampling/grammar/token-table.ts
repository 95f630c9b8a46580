import { RuvLLMError } from '../../core/errors.ts';
import { BETWEEN, RESULT, nextState, readByte } from './json/string-lexer.ts';
import type { Spelling, TokenTrie } from './token-trie.ts';
import { createTokenTrie } from './token-trie.ts';
import type { TokenVocabulary } from './types.ts';
import { CONTROL_BEGIN, CONTROL_END } from './types.ts';

/** A vocabulary prepared for masks. Control tokens are spelled between marks, which sort after all bytes. */
export interface TokenTable extends TokenTrie {
  readonly vocabulary: TokenVocabulary;
  readonly numWords: number;
  /** The node of the mark before control tokens; `numNodes` if there are none. */
  readonly controlNode: number;
  /** Tokens that stay inside a JSON string if read inside one. */
  readonly contentMask: Uint32Array;
  /** The tokens of `contentMask` by number of characters, longest first, and those numbers. */
  readonly longest: Int32Array;
  readonly lengths: Int32Array;
  /** Tokens that end the JSON string they start in: those without escapes from the quote on, the others whole. */
  readonly quotes: TokenTrie;
  readonly escapedQuotes: TokenTrie;
  /** All tokens with a quote, whole. */
  readonly withQuote: TokenTrie;
  /** Tokens of digits, signs, points and exponents alone, and the same after a space, without it. */
  readonly numeric: TokenTrie;
  readonly spacedNumeric: TokenTrie;
  /**
   * Nodes with no other tokens at or below them than these, and such that JSON has nowhere: a number and a letter. 1: without a
   * space, 2: after one, 0: other nodes.
   */
  readonly numericKind: Uint8Array;
  /** Maximum characters before the quote. */
  readonly maxBeforeQuote: number;
}

// A longer token would overflow the depth; real ones have a few hundred bytes at most.
const MAX_TOKEN_BYTES = 4_096;

interface Content {
  /** Characters of a string's content; a partial one at the end counts, and escapes are never undercounted. */
  readonly numCharacters: number;
  /** Where the string ends; -1: not in this token. */
  readonly quoteAt: number;
  readonly hasEscape: boolean;
}

/** Reads a text from inside a JSON string to its end; null: invalid in a string. */
function readContent(bytes: Spelling): Content | null {
  let numCharacters = 0;
  let hasEscape = false;
  let state = BETWEEN;
  for (let i = 0; i < bytes.length; i++) {
    const isBetween = state === BETWEEN;
    const code = readByte(state, bytes[i]!);
    if (code === RESULT.invalid) return null;
    if (code === RESULT.quote) return { numCharacters, quoteAt: i, hasEscape };
    if (isBetween) numCharacters++;
    hasEscape ||= isBetween && bytes[i] === 0x5c;
    state = code === RESULT.partial ? nextState : BETWEEN;
  }
  return { numCharacters, quoteAt: -1, hasEscape };
}

/** The spelling of a control token, for grammars that allow it. */
export function markControl(spelling: Uint8Array): Uint16Array {
  return Uint16Array.from([CONTROL_BEGIN, ...spelling, CONTROL_END]);
}

function spellTokens(vocabulary: TokenVocabulary): Map<number, Spelling> {
  const ends = new Set(vocabulary.endIds);
  const texts = new Map<number, Spelling>();
  for (let id = 0; id < vocabulary.size; id++) {
    if (ends.has(id)) continue;
    const bytes = vocabulary.bytes(id);
    if (bytes.length > MAX_TOKEN_BYTES) {
      throw new RuvLLMError('unsupported', `token ${id} has ${bytes.length} bytes, the limit is ${MAX_TOKEN_BYTES}`);
    }
    if (bytes.length > 0) texts.set(id, vocabulary.isControl(id) ? markControl(bytes) : bytes);
  }
  return texts;
}

const SPACE = 0x20;
const NUMERIC = new Set(Array.from('0123456789.eE+-', (character) => character.charCodeAt(0)));
const isNumeric = (byte: number): boolean => NUMERIC.has(byte);
/** Bytes that can follow a number. */
const AFTER_NUMBER = new Set(Array.from(',]} \n\t', (character) => character.charCodeAt(0)));

/** Whether a text, after an optional space, starts like a number that JSON cannot continue in this way. */
function isBrokenNumber(text: Spelling): boolean {
  const from = text[0] === SPACE ? 1 : 0;
  const end = text.findIndex((byte, i) => i >= from && !isNumeric(byte));
  return end > from && !AFTER_NUMBER.has(text[end]!);
}

/** Per node the kind of its tokens; 0 if they are of different kinds. */
function markNodes({ numNodes, first, skip, sorted }: TokenTrie, kindOf: (id: number) => number): Uint8Array {
  const kinds = Uint8Array.from(sorted, kindOf);
  // Position after the last token of the same kind in a row.
  const ends = new Int32Array(kinds.length);
  for (let i = kinds.length - 1; i >= 0; i--) ends[i] = kinds[i] === kinds[i + 1] ? ends[i + 1]! : i + 1;
  return Uint8Array.from({ length: numNodes }, (_, node) => {
    const [from, to] = [first[node]!, first[skip[node]!]!];
    return from < to && ends[from]! >= to ? kinds[from]! : 0;
  });
}

/** Prepares a vocabulary once for all grammars. */
export function createTokenTable(vocabulary: TokenVocabulary): TokenTable {
  const texts = spellTokens(vocabulary);
  const numWords = (vocabulary.size + 31) >>> 5;
  const contentMask = new Uint32Array(numWords);
  const counts = new Map<number, number>();
  const quotes = new Map<number, Spelling>();
  const escapedQuotes = new Map<number, Spelling>();
  const withQuote = new Map<number, Spelling>();
  const numeric = new Map<number, Spelling>();
  const spacedNumeric = new Map<number, Spelling>();
  let maxBeforeQuote = 0;
  for (const [id, text] of texts) {
    if (text[0] !== CONTROL_BEGIN && text.includes(0x22)) withQuote.set(id, text);
    if (text.every(isNumeric)) numeric.set(id, text);
    else if (text[0] === SPACE && text.length > 1 && text.subarray(1).every(isNumeric)) {
      spacedNumeric.set(id, text.subarray(1));
    }
    const content = text[0] === CONTROL_BEGIN ? null : readContent(text);
    if (content === null) continue;
    if (content.quoteAt < 0) {
      contentMask[id >>> 5]! |= 1 << (id & 31);
      counts.set(id, content.numCharacters);
    } else {
      maxBeforeQuote = Math.max(maxBeforeQuote, content.numCharacters);
      if (content.hasEscape) escapedQuotes.set(id, text);
      else quotes.set(id, text.subarray(content.quoteAt));
    }
  }
  const longest = Int32Array.from(counts.keys()).sort((a, b) => counts.get(b)! - counts.get(a)!);
  const trie = createTokenTrie(texts);
  const controlNode = trie.bytes.indexOf(CONTROL_BEGIN);
  return {
    ...trie,
    vocabulary,
    numWords,
    controlNode: controlNode < 0 ? trie.numNodes : controlNode,
    contentMask,
    longest,
    lengths: longest.map((id) => counts.get(id)!),
    quotes: createTokenTrie(quotes),
    escapedQuotes: createTokenTrie(escapedQuotes),
    withQuote: createTokenTrie(withQuote),
    numeric: createTokenTrie(numeric),
    spacedNumeric: createTokenTrie(spacedNumeric),
    numericKind: markNodes(trie, (id) => {
      const text = texts.get(id)!;
      if (!numeric.has(id) && !spacedNumeric.has(id) && !isBrokenNumber(text)) return 0;
      return text[0] === SPACE ? 2 : 1;
    }),
    maxBeforeQuote,
  };
}
