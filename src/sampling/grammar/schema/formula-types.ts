import type { NumberSet } from '../numbers/number-set.ts';
import type { Dfa } from '../automata/automaton.ts';
import type { Fuel } from '../limits.ts';

/** The JSON types, as bits. An integer is a number whose value is whole. */
export const TYPE = { null: 1, boolean: 2, number: 4, string: 8, array: 16, object: 32 } as const;

export type TypeBit = (typeof TYPE)[keyof typeof TYPE];

export const ALL_TYPES = 63;

/** One requirement on a value of one type. */
export type Atom =
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'number'; readonly set: NumberSet }
  | { readonly kind: 'text'; readonly dfa: Dfa }
  | { readonly kind: 'length'; readonly min: number; readonly max: number }
  /** The item at `index`, if it exists. */
  | { readonly kind: 'item'; readonly index: number; readonly goal: Formula }
  /** Every item from `from` on. */
  | { readonly kind: 'items'; readonly from: number; readonly goal: Formula }
  | { readonly kind: 'item-count'; readonly min: number; readonly max: number }
  /** Between min and max items from `from` on satisfy the goal. */
  | {
      readonly kind: 'contains';
      readonly from: number;
      readonly goal: Formula;
      readonly min: number;
      readonly max: number;
    }
  | { readonly kind: 'unique'; readonly pointer: string }
  /** The value of the property, if it exists. */
  | { readonly kind: 'property'; readonly name: string; readonly goal: Formula }
  | { readonly kind: 'required'; readonly name: string }
  /** The values of all properties whose names the automaton accepts. */
  | { readonly kind: 'keys'; readonly names: Dfa; readonly goal: Formula }
  /** The value of at least one such property. */
  | { readonly kind: 'some-key'; readonly names: Dfa; readonly goal: Formula }
  | { readonly kind: 'key-count'; readonly min: number; readonly max: number };

/**
 * A requirement on a value: types and atoms under "and" and "or", with references to schemas that are read lazily, so that recursion
 * is finite. Equal formulas are one object, identified by `id`.
 */
export type Formula =
  | { readonly id: number; readonly kind: 'and'; readonly parts: readonly Formula[] }
  | { readonly id: number; readonly kind: 'or'; readonly parts: readonly Formula[] }
  | { readonly id: number; readonly kind: 'types'; readonly types: number }
  /** True for values of the atom's type that satisfy it, false for all others. */
  | { readonly id: number; readonly kind: 'atom'; readonly type: TypeBit; readonly atom: Atom }
  | { readonly id: number; readonly kind: 'schema'; readonly node: number; readonly isNegated: boolean };

export interface Formulas {
  readonly fuel: Fuel;
  readonly always: Formula;
  readonly never: Formula;
  and(parts: readonly Formula[]): Formula;
  or(parts: readonly Formula[]): Formula;
  not(formula: Formula): Formula;
  types(bits: number): Formula;
  atom(atom: Atom): Formula;
  /** The atom for values of its type; other types pass, as with JSON Schema keywords. */
  whenTyped(atom: Atom): Formula;
  schema(node: number, isNegated?: boolean): Formula;
}
