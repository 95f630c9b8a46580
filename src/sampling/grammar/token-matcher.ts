import { RuvLLMError } from '../../core/errors.ts';
import { createMaskCache, type MaskCache } from './mask-cache.ts';
import { spellBytes } from './spell-bytes.ts';
import { fillMask, stepToken } from './token-mask.ts';
import type { TokenTable } from './token-table.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

/** Follows one generated text under a grammar. */
export interface TokenMatcher {
  /** Bit id of word id >> 5: whether the token is allowed next. Shared, valid until the next call; do not modify. */
  mask(): Uint32Array;
  /** Accepts a token; false, changing nothing, if it is not allowed. */
  accept(tokenId: number): boolean;
  /** The text so far is complete: it may end here. */
  readonly isComplete: boolean;
  /** An end token was accepted. */
  readonly isEnded: boolean;
  /** No token is allowed next: the vocabulary cannot spell what the grammar requires. */
  readonly isDead: boolean;
  /** The only allowed token, or null if there are more. */
  forcedToken(): number | null;
  /** Bytes of the shortest completion; an upper bound of its tokens where every byte has a token. */
  closingBytes(): number;
  /** The shortest completion; null if longer than `maxBytes`. Default 65,536. */
  closing(maxBytes?: number): Uint8Array | null;
  /** The fewest tokens that spell these bytes from here on; null if the vocabulary cannot. */
  spell(bytes: Uint8Array): number[] | null;
  /** Number of bytes of a token. */
  sizeOf(tokenId: number): number;
  /** The spelling of a token. */
  bytesOf(tokenId: number): Uint8Array;
  /** The fewest tokens that spell the shortest completion. */
  closingTokens(maxBytes?: number): number[] | null;
  clone(): TokenMatcher;
}

export interface TokenMatcherOptions {
  /** Bytes of cached masks per grammar and vocabulary. Default 16 MiB. */
  readonly cacheBytes?: number;
}

const DEFAULT_CACHE_BYTES = 16 << 20;
const DEFAULT_CLOSING_BYTES = 65_536;

const caches = new WeakMap<CompiledGrammar, WeakMap<TokenTable, MaskCache>>();

function cacheOf(grammar: CompiledGrammar, table: TokenTable): MaskCache {
  let tables = caches.get(grammar);
  if (tables === undefined) caches.set(grammar, (tables = new WeakMap()));
  let cache = tables.get(table);
  if (cache === undefined) tables.set(table, (cache = createMaskCache()));
  return cache;
}

function readMask(grammar: CompiledGrammar, table: TokenTable, state: GrammarState, cacheBytes: number): Uint32Array {
  const cache = cacheOf(grammar, table);
  const key = grammar.keyOf(state, table.below[0]!);
  let mask = cache.get(key);
  if (mask === undefined) {
    grammar.beginToken();
    mask = new Uint32Array(table.numWords);
    fillMask(grammar, table, state, mask);
    cache.add(key, mask, cacheBytes);
  }
  return mask;
}

/** Starts a text under a grammar. */
export function createTokenMatcher(
  grammar: CompiledGrammar,
  table: TokenTable,
  options: TokenMatcherOptions = {},
): TokenMatcher {
  return matcherAt(grammar, table, options.cacheBytes ?? DEFAULT_CACHE_BYTES, grammar.start, false);
}

function matcherAt(
  grammar: CompiledGrammar,
  table: TokenTable,
  cacheBytes: number,
  start: GrammarState,
  hasEnded: boolean,
): TokenMatcher {
  const { vocabulary } = table;
  const nothing = new Uint32Array(table.numWords);
  let state = start;
  let isEnded = hasEnded;

  const matcher: TokenMatcher = {
    mask: () => (isEnded ? nothing : readMask(grammar, table, state, cacheBytes)),
    accept(tokenId) {
      if (!Number.isInteger(tokenId) || tokenId < 0 || tokenId >= vocabulary.size) {
        throw new RuvLLMError('invalid_token', `token ${tokenId} is outside the vocabulary of ${vocabulary.size}`);
      }
      if (isEnded) return false;
      const isEnd = vocabulary.endIds.includes(tokenId);
      if (isEnd && grammar.isComplete(state)) {
        isEnded = true;
        return true;
      }
      const next = stepToken(grammar, vocabulary, state, tokenId);
      if (next === null || (isEnd && !grammar.isComplete(next))) return false;
      state = next;
      isEnded = isEnd;
      return true;
    },
    get isComplete() {
      return grammar.isComplete(state);
    },
    get isEnded() {
      return isEnded;
    },
    get isDead() {
      return !isEnded && matcher.mask().every((word) => word === 0);
    },
    forcedToken() {
      let found: number | null = null;
      const mask = matcher.mask();
      for (let i = 0; i < mask.length; i++) {
        const word = mask[i]!;
        if (word === 0) continue;
        if (found !== null || (word & (word - 1)) !== 0) return null;
        found = i * 32 + (31 - Math.clz32(word));
      }
      return found;
    },
    closingBytes() {
      grammar.beginToken();
      return grammar.closingBytes(state);
    },
    closing(maxBytes = DEFAULT_CLOSING_BYTES) {
      grammar.beginToken();
      return grammar.closing(state, maxBytes);
    },
    closingTokens(maxBytes = DEFAULT_CLOSING_BYTES) {
      const bytes = matcher.closing(maxBytes);
      return bytes === null ? null : matcher.spell(bytes);
    },
    spell: (bytes) => spellBytes(table, bytes, { grammar, state }),
    sizeOf: (tokenId) => vocabulary.bytes(tokenId).length,
    bytesOf: (tokenId) => vocabulary.bytes(tokenId),
    clone: () => matcherAt(grammar, table, cacheBytes, state, isEnded),
  };
  return matcher;
}
