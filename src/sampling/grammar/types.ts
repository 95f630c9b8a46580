import type { StructureNode } from '../../core/structure-node.ts';
import type { Fuel } from './limits.ts';
import type { NumberContent } from './number-content.ts';
import type { StringContent } from './string-content.ts';
import type { TextSearch } from './structure/text-search.ts';

/** Whether formats are enforced. */
export type FormatAssertion = boolean | 'where-possible';

/** A grammar that the generated text must satisfy. */
export type GrammarSource =
  /** Any JSON object. */
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly schema: unknown;
      /** Rejects keywords that JSON Schema does not define, instead of ignoring them. Default false. */
      readonly strict?: boolean;
      /**
       * Enforces `format`: true rejects formats that cannot be enforced, 'where-possible' ignores those. Default false: all are
       * ignored.
       */
      readonly assertFormats?: FormatAssertion;
    }
  /** llama.cpp's grammar dialect; the rule `root` is the whole text. */
  | { readonly type: 'gbnf'; readonly text: string }
  /** The whole text must match the pattern. */
  | { readonly type: 'regex'; readonly pattern: string }
  /** A fixed skeleton of literals, JSON and free text; control tokens are allowed where it spells them. */
  | { readonly type: 'structure'; readonly root: StructureNode };

/** Read by `step` before and after the spelling of a control token: not a byte, so no text can be mistaken for one. */
export const CONTROL_BEGIN = 256;
export const CONTROL_END = 257;

/** A position in a text under a grammar. Immutable. */
export interface GrammarState {
  /** Inside a JSON string: how many characters of any content may follow, except `fillers`. 0 elsewhere. */
  readonly freeRoom: number;
  /** Content, without escapes of digits, of which a prefix that fills the room may be forbidden: the grammar decides. */
  readonly fillers?: readonly Uint8Array[] | null;
  /** No content longer than `freeRoom` is allowed. */
  readonly endsAtRoom?: boolean;
  /**
   * Inside a JSON string whose content, up to `freeRoom`, does not affect what follows its quote, except these endings:
   * the quote must not follow them where they are spelled without escapes. Escaped spellings are left to the grammar.
   */
  readonly taken?: readonly Uint8Array[] | null;
  /** Few states follow, whatever the text: transitions are worth keeping. */
  readonly isRecurring?: boolean;
  /** A text that this content must not contain, and how much of it the text so far ends with. */
  readonly avoid?: { readonly search: TextSearch; readonly at: number } | null;
}

/** The tokens of a state that do not depend on what is around the value. */
export interface StateContents {
  /**
   * Inside a JSON string whose content automata alone decide: all readings of it, except those that `freeRoom` covers.
   * null outside strings.
   */
  readonly strings: readonly StringContent[] | null;
  /** Outside strings: the numbers that may go on or start, and those that may start after a space. */
  readonly numbers: readonly NumberContent[];
  readonly spacedNumbers: readonly NumberContent[];
  /** Pays for finding the tokens. */
  readonly fuel: Fuel;
}

/** A compiled grammar: an automaton over bytes in which every state can be completed. */
export interface CompiledGrammar {
  readonly start: GrammarState;
  /** True: control tokens are allowed where their spelling is; absent: never. */
  readonly takesControls?: boolean;
  /** The state after one more byte, or mark where control tokens are allowed; null if not allowed. */
  step(state: GrammarState, byte: number): GrammarState | null;
  /** Whether every character in [lo, hi], without surrogates, leads back to the state. Absent: unknown. */
  loopsOn?(state: GrammarState, lo: number, hi: number): boolean;
  /** Whether the text so far is complete. */
  isComplete(state: GrammarState): boolean;
  /** null: unknown, or all tokens depend on it. */
  contentsOf?(state: GrammarState): StateContents | null;
  /** Equal for states with equal continuations of up to `maxBytes` bytes. Default: unlimited. */
  keyOf(state: GrammarState, maxBytes?: number): string;
  /** Bytes of the shortest completion. */
  closingBytes(state: GrammarState): number;
  /** The shortest completion, or null if longer than `maxBytes`. */
  closing(state: GrammarState, maxBytes: number): Uint8Array | null;
  /** Called before each token to limit its cost. */
  beginToken(): void;
  /** Approximate bytes held, without masks: grows with the texts it has followed. Default 0. */
  readonly sizeBytes?: number;
}

/** A tokenizer's tokens as bytes. */
export interface TokenVocabulary {
  readonly size: number;
  /** For a control token: its spelling. */
  bytes(id: number): Uint8Array;
  /** Never part of a text, only of a structure's literals and free text. */
  isControl(id: number): boolean;
  /** Allowed exactly when the text so far is complete, or the token's spelling completes it. */
  readonly endIds: readonly number[];
}
