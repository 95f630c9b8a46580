import type { StructureNode } from '../../core/structure-node.ts';
import type { TextSearch } from './structure/text-search.ts';

/** What the text must be. */
export type GrammarSource =
  /** Any JSON object. */
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly schema: unknown;
      /** Keywords that JSON Schema does not know are refused instead of ignored. Default false. */
      readonly strict?: boolean;
      /** `format` is enforced, and refused where it cannot be, instead of being a note. Default false. */
      readonly assertFormats?: boolean;
    }
  /** The grammar dialect of llama.cpp; the rule `root` is the whole text. */
  | { readonly type: 'gbnf'; readonly text: string }
  /** The whole text matches the pattern. */
  | { readonly type: 'regex'; readonly pattern: string }
  /** A fixed skeleton around literals, JSON and free text; control tokens are allowed where it spells them. */
  | { readonly type: 'structure'; readonly root: StructureNode };

/** Read by `step` before and after the spelling of a control token: no byte, so no text can be mistaken for one. */
export const CONTROL_BEGIN = 256;
export const CONTROL_END = 257;

/** A place in a text under a grammar. Never changes. */
export interface GrammarState {
  /** Inside a JSON string: how many characters of any content may follow, whatever they are. 0 elsewhere. */
  readonly freeRoom: number;
  /**
   * Inside a JSON string whose content, as far as `freeRoom` goes, is no matter to what follows its quote, but for these ways to
   * go on: the quote may not follow them where they are spelled without escapes. Escaped spellings are the grammar's to judge.
   */
  readonly taken?: readonly Uint8Array[] | null;
  /** A text that this content may not contain, and how much of it the text so far ends with. */
  readonly avoid?: { readonly search: TextSearch; readonly at: number } | null;
}

/** A compiled grammar: a walk over bytes in which every state can still be completed. */
export interface CompiledGrammar {
  readonly start: GrammarState;
  /** True: control tokens may come where their spelling may; absent: never. */
  readonly takesControls?: boolean;
  /** The state after one more byte, or mark where controls are taken; null when no text of the grammar begins so. */
  step(state: GrammarState, byte: number): GrammarState | null;
  /** Whether the text so far is whole. */
  isComplete(state: GrammarState): boolean;
  /** Equal for states with equal futures, as far as the next `maxBytes` bytes go. Default: all of them. */
  keyOf(state: GrammarState, maxBytes?: number): string;
  /** Bytes of the shortest completion. */
  closingBytes(state: GrammarState): number;
  /** The shortest completion, or null when it is longer than `maxBytes`. */
  closing(state: GrammarState, maxBytes: number): Uint8Array | null;
  /** Called before each token: bounds what one may cost. */
  beginToken(): void;
  /** About what it holds by now, without masks: it grows with the texts it has followed. Default 0. */
  readonly sizeBytes?: number;
}

/** A tokenizer's tokens as bytes. */
export interface TokenVocabulary {
  readonly size: number;
  /** Of a control token: its spelling. */
  bytes(id: number): Uint8Array;
  /** Never part of a text, but of a structure's literals and free text. */
  isControl(id: number): boolean;
  /** Allowed exactly when the text so far is whole, or the token's spelling makes it so. */
  readonly endIds: readonly number[];
}
