import { assert } from '../core/errors.ts';
import {
  type CompiledGrammar,
  createTokenMatcher,
  createTokenTable,
  type GrammarCompilation,
  type GrammarSource,
  openTokenTable,
  openVocabulary,
  startGrammar,
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
  /** Compiles a part of the grammar, a few milliseconds; true once `open` returns or fails at once. */
  prepare(source: GrammarSource, automata: Int32Array | null): boolean;
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
  /** Steps per token of a running matcher before it fails. Default `ENGINE_LIMITS.maxStepsPerToken`. */
  readonly maxStepsPerToken?: number;
  /** Monotonic milliseconds. Default: a clock that stands still, so that parts are limited by their steps only. */
  readonly now?: () => number;
}

/** Compilation steps, about 10 million per second. */
export const ENGINE_LIMITS = {
  /** Limit when another thread has prepared the automata. */
  maxPreparedSteps: 3_000_000,
  /** Limit of a part that cannot be interrupted, during which all streams of the engine stall: some 50 ms. */
  maxStretchSteps: 150_000,
  /** Approximate memory of a compiled grammar. */
  maxBytes: 64 << 20,
  /** Limit without another thread. */
  maxSteps: 2_000_000,
  /** Where all streams of the engine wait for a token, some 40 ms; in the sampler thread, only its own. */
  maxStepsPerToken: 300_000,
  /** In the engine beside a sampler thread, which takes over a text that needs more: a few milliseconds. */
  maxQuickStepsPerToken: 10_000,
} as const;

/** Whitespace in a row: a newline and nine levels of indent. Small models would otherwise fill their token limit with it. */
const MAX_WHITESPACE = 20;

/**
 * Limits of a part between two steps of the model, whichever comes first. Code that runs for the first time takes ten times as long,
 * and on a busy machine a thread loses its core in between.
 */
const SLICE_STEPS = 25_000;
const SLICE_MS = 4;

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
  maxStepsPerToken = ENGINE_LIMITS.maxStepsPerToken,
  now = () => 0,
}: ConstraintsOptions = {}): Constraints {
  // Built lazily: an error belongs to the request that needs the table; in the message handler it would end the engine.
  let createTable: (() => TokenTable) | null = null;
  let table: TokenTable | null = null;
  const compiled = new Map<string, Kept>();
  let current: { readonly key: string; readonly compilation: GrammarCompilation } | null = null;
  let failure: { readonly key: string; readonly error: unknown } | null = null;

  /** A grammar may have a megabyte, and every turn of the engine asks for its key. */
  const keys = new WeakMap<GrammarSource, string>();
  function keyOf(source: GrammarSource): string {
    const known = keys.get(source);
    if (known !== undefined) return known;
    const key = JSON.stringify(source);
    keys.set(source, key);
    return key;
  }

  const sizeOf = ({ grammar, keyBytes }: Kept): number => keyBytes + (grammar.sizeBytes ?? 0) + MASK_BYTES;
  function totalBytes(): number {
    let sizeBytes = 0;
    for (const kept of compiled.values()) sizeBytes += sizeOf(kept);
    return sizeBytes;
  }

  function start(source: GrammarSource, automata: Int32Array | null): GrammarCompilation {
    const { maxPreparedSteps, maxSteps } = ENGINE_LIMITS;
    const limits = {
      maxSteps: automata === null ? maxSteps : maxPreparedSteps,
      maxStepsPerToken,
      maxWhitespace: MAX_WHITESPACE,
    };
    return startGrammar(source, limits, automata);
  }

  function keep(key: string, kept: Kept): CompiledGrammar {
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

  /** Advances the compilation that was begun last; another one starts anew. */
  function advance(
    source: GrammarSource,
    automata: Int32Array | null,
    numSteps: number,
    isOver?: () => boolean,
  ): CompiledGrammar | null {
    const key = keyOf(source);
    const kept = compiled.get(key);
    if (kept !== undefined) return keep(key, kept);
    if (current?.key !== key) current = { key, compilation: start(source, automata) };
    try {
      const grammar = current.compilation.advance(numSteps, isOver);
      if (grammar === null) return null;
      current = null;
      return keep(key, { grammar, keyBytes: 2 * key.length });
    } catch (error) {
      current = null;
      throw error;
    }
  }

  return {
    setVocabulary(data) {
      createTable = () => createTokenTable(openVocabulary(data));
    },
    setTable(data) {
      createTable = () => openTokenTable(data);
    },
    has: (source) => compiled.has(keyOf(source)),
    prepare(source, automata) {
      try {
        const endMs = now() + SLICE_MS;
        return advance(source, automata, SLICE_STEPS, () => now() >= endMs) !== null;
      } catch (error) {
        failure = { key: keyOf(source), error };
        return true;
      }
    },
    open(source, automata) {
      const failed = failure;
      failure = null;
      if (failed !== null && failed.key === keyOf(source)) throw failed.error;
      assert(createTable !== null, 'a grammar arrived before the vocabulary');
      table ??= createTable();
      return createTokenMatcher(advance(source, automata, Infinity)!, table, { cacheBytes: MASK_BYTES });
    },
    get sizeBytes() {
      return totalBytes();
    },
  };
}
