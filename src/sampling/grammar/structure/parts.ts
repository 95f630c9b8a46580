import type { CompiledGrammar } from '../types.ts';
import type { RawBounds } from './raw-bounds.ts';
import type { TextSearch, TriggerSearch } from './text-search.ts';

/** A validated node of a structure. `least` is the bytes of its shortest text. */
export type Part = TextPart | JsonPart | RawPart | SequencePart | ChoicePart | RepeatPart | FreePart;

interface PartBase {
  readonly id: number;
  readonly least: number;
}

export interface TextPart extends PartBase {
  readonly kind: 'text';
  readonly bytes: Uint8Array;
}

export interface JsonPart extends PartBase {
  readonly kind: 'json';
  readonly grammar: CompiledGrammar;
  /** A text it must not contain. */
  readonly without: TextSearch | null;
  /** The schema may force strings with the end of `without`: then a completion has escapes in it. */
  readonly mayNeedEscapes: boolean;
}

export interface RawPart extends PartBase {
  readonly kind: 'raw';
  readonly until: TextSearch;
  /** `until` as a literal, for control tokens that spell it. */
  readonly untilText: TextPart;
  readonly without: TextSearch | null;
  /** Null: any length. */
  readonly bounds: RawBounds | null;
}

export interface SequencePart extends PartBase {
  readonly kind: 'sequence';
  readonly items: readonly Part[];
}

export interface ChoicePart extends PartBase {
  readonly kind: 'choice';
  readonly items: readonly Part[];
}

export interface RepeatPart extends PartBase {
  readonly kind: 'repeat';
  readonly item: Part;
  readonly separator: TextPart;
  readonly min: number;
  readonly max: number;
}

export interface FreePart extends PartBase {
  readonly kind: 'free';
  readonly search: TriggerSearch;
  /** The node that applies after each trigger. */
  readonly parts: readonly Part[];
  readonly endsAfterBranch: boolean;
}
