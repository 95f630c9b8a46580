import { assert } from '../core/errors.ts';
import {
  type CompiledGrammar,
  compileGrammar,
  createTokenMatcher,
  createTokenTable,
  type GrammarSource,
  type TokenMatcher,
  type TokenTable,
} from '../sampling/grammar/index.ts';

/** A tokenizer's tokens as plain data. */
export interface VocabularyData {
  /** The bytes of all tokens, one after the other; token i is [offsets[i], offsets[i + 1]); a control token's are its spelling. */
  readonly bytes: Uint8Array;
  readonly offsets: Int32Array;
  /** 1: a control token. */
  readonly isControl: Uint8Array;
  readonly endIds: readonly number[];
}

/** What texts may be constrained to; the vocabulary comes once, before the first. */
export interface Constraints {
  setVocabulary(data: VocabularyData): void;
  /** The start of a text under a grammar; typed errors name what cannot be enforced. */
  open(source: GrammarSource): TokenMatcher;
}

/** Steps of compiling and of one token: a fifth and a tenth of a second in which other streams stand still. */
const LIMITS = { maxSteps: 2_000_000, maxStepsPerToken: 1_000_000 };
/** Grammars kept compiled; clients repeat theirs, and each may hold masks of its own. */
const MAX_GRAMMARS = 32;

export function createConstraints(): Constraints {
  let table: TokenTable | null = null;
  const compiled = new Map<string, CompiledGrammar>();

  function compile(source: GrammarSource): CompiledGrammar {
    const key = JSON.stringify(source);
    const grammar = compiled.get(key) ?? compileGrammar(source, LIMITS);
    compiled.delete(key);
    compiled.set(key, grammar); // the order of a Map: the longest unused is first
    for (const oldest of compiled.keys()) {
      if (compiled.size <= MAX_GRAMMARS) break;
      compiled.delete(oldest);
    }
    return grammar;
  }

  return {
    setVocabulary({ bytes, offsets, isControl, endIds }) {
      table = createTokenTable({
        size: isControl.length,
        bytes: (id) => bytes.subarray(offsets[id]!, offsets[id + 1]!),
        isControl: (id) => isControl[id] === 1,
        endIds,
      });
    },
    open(source) {
      assert(table !== null, 'a grammar came before the vocabulary');
      return createTokenMatcher(compile(source), table);
    },
  };
}
