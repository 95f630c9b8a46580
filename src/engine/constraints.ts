import { assert } from '../core/errors.ts';
import {
  type CompiledGrammar,
  compileGrammar,
  createTokenMatcher,
  createTokenTable,
  type GrammarSource,
  openTokenTable,
  openVocabulary,
  type TokenMatcher,
  type TokenTable,
  type TokenTableData,
  type VocabularyData,
} from '../sampling/grammar/index.ts';

export type { TokenTableData, VocabularyData };

/** Compiles and caches grammars; the vocabulary must be set before the first `open`. */
export interface Constraints {
  /** The token table is built with the first grammar: 1 s at 150,000 tokens. */
  setVocabulary(data: VocabularyData): void;
  /** The vocabulary with a token table built in another thread. */
  setTable(data: TokenTableData): void;
  /** True if `open` would not have to compile. */
  has(source: GrammarSource): boolean;
  /**
   * The initial state of a grammar; typed errors name what cannot be enforced. `automata`: recorded by `recordGrammar`
   * in another thread.
   */
  open(source: GrammarSource, automata: Int32Array | null): TokenMatcher;
  /** Approximate bytes of the cached grammars. */
  readonly sizeBytes: number;
}

export interface ConstraintsOptions {
  /** Limits of the compiled-grammar cache. Defaults: 32 grammars, 128 MiB. */
  readonly maxGrammars?: number;
  readonly maxBytes?: number;
}

/** Compilation steps, about 10 million per second, during which all streams of the engine stall. */
export const ENGINE_LIMITS = {
  /** Limit when another thread has prepared the automata. */
  maxPreparedSteps: 300_000,
  /** Limit without another thread. */
  maxSteps: 2_000_000,
  maxStepsPerToken: 1_000_000,
} as const;

/** Whitespace in a row: a newline and nine levels of indent. Small models would otherwise fill their token limit with it. */
const MAX_WHITESPACE = 20;

const MAX_GRAMMARS = 32;
const MAX_BYTES = 128 << 20;
/** Counted per grammar: at 150,000 tokens a mask has 19 kB. */
const MASK_BYTES = 2 << 20;

interface Kept {
  readonly grammar: CompiledGrammar;
  readonly keyBytes: number;
}

export function createConstraints({
  maxGrammars = MAX_GRAMMARS,
  maxBytes = MAX_BYTES,
}: ConstraintsOptions = {}): Constraints {
  // Built lazily: an error belongs to the request that needs the table; in the message handler it would end the engine.
  let createTable: (() => TokenTable) | null = null;
  let table: TokenTable | null = null;
  const compiled = new Map<string, Kept>();

  const sizeOf = ({ grammar, keyBytes }: Kept): number => keyBytes + (grammar.sizeBytes ?? 0) + MASK_BYTES;
  function totalBytes(): number {
    let sizeBytes = 0;
    for (const kept of compiled.values()) sizeBytes += sizeOf(kept);
    return sizeBytes;
  }

  function compile(source: GrammarSource, automata: Int32Array | null): CompiledGrammar {
    const key = JSON.stringify(source);
    const { maxPreparedSteps, maxSteps, maxStepsPerToken } = ENGINE_LIMITS;
    const limits = {
      maxSteps: automata === null ? maxSteps : maxPreparedSteps,
      maxStepsPerToken,
      maxWhitespace: MAX_WHITESPACE,
    };
    const kept = compiled.get(key) ?? {
      grammar: compileGrammar(source, limits, automata),
      keyBytes: 2 * key.length,
    };
    compiled.delete(key);
    compiled.set(key, kept); // a Map iterates in insertion order: least recently used first
    let sizeBytes = totalBytes();
    for (const [oldest, { grammar, keyBytes }] of compiled) {
      if (oldest === key || (compiled.size <= maxGrammars && sizeBytes <= maxBytes)) break;
      compiled.delete(oldest);
      sizeBytes -= sizeOf({ grammar, keyBytes });
    }
    return kept.grammar;
  }

  return {
    setVocabulary(data) {
      createTable = () => createTokenTable(openVocabulary(data));
    },
    setTable(data) {
      createTable = () => openTokenTable(data);
    },
    has: (source) => compiled.has(JSON.stringify(source)),
    open(source, automata) {
      assert(createTable !== null, 'a grammar arrived before the vocabulary');
      table ??= createTable();
      return createTokenMatcher(compile(source, automata), table, { cacheBytes: MASK_BYTES });
    },
    get sizeBytes() {
      return totalBytes();
    },
  };
}
