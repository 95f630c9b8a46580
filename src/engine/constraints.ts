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

/** What texts may be constrained to; the vocabulary comes once, before the first. */
export interface Constraints {
  /** Its table is built with the first grammar, which takes a second at 150 000 tokens. */
  setVocabulary(data: VocabularyData): void;
  /** The vocabulary with its table, which another thread built. */
  setTable(data: TokenTableData): void;
  /** Whether `open` would not have to compile. */
  has(source: GrammarSource): boolean;
  /**
   * The start of a text under a grammar; typed errors name what cannot be enforced. `automata`: what `recordGrammar` kept of
   * the same source in another thread.
   */
  open(source: GrammarSource, automata: Int32Array | null): TokenMatcher;
  /** About what the kept grammars hold, without those that are only in use. */
  readonly sizeBytes: number;
}

export interface ConstraintsOptions {
  /** Grammars kept compiled, and the bytes that they and their masks may hold. Defaults 32 and 128 MiB. */
  readonly maxGrammars?: number;
  readonly maxBytes?: number;
}

/** Steps, about 10 million a second, in which all streams of the engine stand still. */
export const ENGINE_LIMITS = {
  /** Of compiling what another thread has compiled before, its automata at hand. */
  maxPreparedSteps: 300_000,
  /** Of compiling where there is no other thread. */
  maxSteps: 2_000_000,
  maxStepsPerToken: 1_000_000,
} as const;

/** Of white space in a row: a new line and the indent of nine levels. Small models write it until their tokens are gone. */
const MAX_WHITESPACE = 20;

const MAX_GRAMMARS = 32;
const MAX_BYTES = 128 << 20;
/** Of one grammar, whether it has so many or not: at 150 000 tokens a mask has 19 kB. */
const MASK_BYTES = 2 << 20;

interface Kept {
  readonly grammar: CompiledGrammar;
  readonly keyBytes: number;
}

export function createConstraints({
  maxGrammars = MAX_GRAMMARS,
  maxBytes = MAX_BYTES,
}: ConstraintsOptions = {}): Constraints {
  // Not when the vocabulary comes: what it throws is for the one who asks, in the message's handler it would end the engine.
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
    compiled.set(key, kept); // the order of a Map: the longest unused is first
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
