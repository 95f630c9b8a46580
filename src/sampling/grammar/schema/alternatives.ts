import type { Dfa } from '../automata/automaton.ts';
import type { Distances } from '../automata/dfa-measures.ts';
import type { NumberSet } from '../numbers/number-set.ts';
import type { Formula } from './formula-types.ts';

/** Texts of one automaton, of min to max characters. Bounds occur only with an automaton that accepts everything. */
export interface TextAlternative {
  readonly kind: 'text';
  readonly dfa: Dfa;
  readonly min: number;
  readonly max: number;
  readonly distances: Distances;
  /** Accepted texts per state. */
  readonly counts: Float64Array;
}

export interface NumberAlternative {
  readonly kind: 'number';
  readonly set: NumberSet;
  readonly shortest: string;
}

/** Items from `from` on that satisfy the goal: at least min, at most max. */
export interface Contains {
  readonly from: number;
  readonly goal: Formula;
  readonly min: number;
  readonly max: number;
}

export interface ArrayAlternative {
  readonly kind: 'array';
  readonly key: string;
  /** Goals of the first items, and of all others. */
  readonly prefix: readonly Formula[];
  readonly rest: Formula;
  readonly min: number;
  readonly max: number;
  readonly contains: readonly Contains[];
  /** Pointer of `uniqueItems`, or null. */
  readonly unique: string | null;
}

/** Equivalent property names: one name, or all that match the same patterns. */
export interface KeyClass {
  readonly label: number;
  readonly name: string | null;
  readonly goal: Formula;
  /** Bits of the alternative's `somes` that a property of this class can satisfy. */
  readonly someBits: number;
  readonly isRequired: boolean;
  readonly size: number;
  /** The cheapest names. */
  texts(limit: number): readonly string[];
}

export interface ObjectAlternative {
  readonly kind: 'object';
  readonly key: string;
  /** Reads property names; label i is classes[i - 1]. */
  readonly names: Dfa;
  readonly classes: readonly KeyClass[];
  /** Per state of `names`: the labels that can still be reached. */
  readonly reachable: readonly (readonly number[])[];
  /** At least one property of a class with bit i must satisfy somes[i]. */
  readonly somes: readonly Formula[];
  readonly min: number;
  readonly max: number;
}

/** All alternatives of a value at one place. */
export interface Alternatives {
  readonly isNull: boolean;
  readonly booleans: readonly boolean[];
  readonly numbers: readonly NumberAlternative[];
  readonly texts: readonly TextAlternative[];
  readonly arrays: readonly ArrayAlternative[];
  readonly objects: readonly ObjectAlternative[];
}
