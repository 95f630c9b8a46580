import { countTexts, jsonCost, measureDistances } from '../automata/dfa-measures.ts';
import type { Dfa } from '../automata/automaton.ts';
import { dfaOfAny, dfaOfLengths, productDfa } from '../automata/dfa.ts';
import type { Fuel } from '../limits.ts';
import type { NumberSet } from '../numbers/number-set.ts';
import { ALL_NUMBERS, intersectNumbers } from '../numbers/number-set.ts';
import { completeNumber, isNumberPrefix } from '../numbers/number-text.ts';
import type { NumberAlternative, TextAlternative } from './alternatives.ts';
import type { Atom } from './formula-types.ts';

export interface TextSet {
  readonly dfa: Dfa;
  readonly min: number;
  readonly max: number;
}

/** Builds the alternatives of strings and numbers; combined automata are cached. */
export interface ScalarBuilder {
  textSet(atoms: readonly Atom[]): TextSet | null;
  texts(terms: readonly (readonly Atom[])[]): TextAlternative[];
  /** One automaton for all texts of the terms. */
  unionOf(terms: readonly (readonly Atom[])[]): Dfa;
  numbers(terms: readonly (readonly Atom[])[]): NumberAlternative[];
  /** Whether no text or number satisfies the atoms; false for atoms of other types. */
  isContradiction(atoms: readonly Atom[]): boolean;
}

export function createScalarBuilder(fuel: Fuel): ScalarBuilder {
  const any = dfaOfAny(fuel);
  const combined = new Map<string, Dfa>();
  const combine = (parts: readonly Dfa[], isUnion: boolean): Dfa => {
    const distinct = [...new Map(parts.map((part) => [part.id, part])).values()];
    if (distinct.length === 1) return distinct[0]!;
    const key = `${isUnion ? 'or' : 'and'}${distinct
      .map((part) => part.id)
      .sort()
      .join()}`;
    let dfa = combined.get(key);
    if (dfa === undefined) {
      const label = (labels: readonly number[]): number =>
        Number(isUnion ? labels.some((one) => one !== 0) : labels.every((one) => one !== 0));
      combined.set(key, (dfa = fuel.tape.next(distinct.length, () => productDfa(distinct, label, fuel))));
    }
    return dfa;
  };
  const lengths = new Map<string, Dfa>();
  const withLengths = ({ dfa, min, max }: TextSet): Dfa => {
    if (min === 0 && max === Infinity) return dfa;
    const key = `${min}:${max}`;
    let range = lengths.get(key);
    if (range === undefined) lengths.set(key, (range = fuel.tape.next(min, () => dfaOfLengths(min, max, fuel))));
    return combine([dfa, range], false);
  };
  const alternative = (set: TextSet): TextAlternative => ({
    kind: 'text',
    ...set,
    distances: measureDistances(set.dfa, jsonCost, fuel),
    counts: countTexts(set.dfa, fuel),
  });

  const builder: ScalarBuilder = {
    textSet(atoms) {
      const parts: Dfa[] = [];
      let [min, max] = [0, Infinity];
      for (const atom of atoms) {
        if (atom.kind === 'text') parts.push(atom.dfa);
        if (atom.kind === 'length') [min, max] = [Math.max(min, atom.min), Math.min(max, atom.max)];
      }
      if (min > max) return null;
      const dfa = parts.length === 0 ? any : combine(parts, false);
      if (dfa.numStates === 0) return null;
      if (dfa.free[0] === 1) return { dfa, min, max };
      const bounded = withLengths({ dfa, min, max });
      return bounded.numStates === 0 ? null : { dfa: bounded, min: 0, max: Infinity };
    },
    texts(terms) {
      const sets = terms.map(builder.textSet).filter((set) => set !== null);
      // One automaton for all terms without a counter, to follow fewer threads.
      const plain = sets.filter((set) => set.min === 0 && set.max === Infinity);
      const merged =
        plain.length === 0
          ? []
          : [
              {
                dfa: combine(
                  plain.map((set) => set.dfa),
                  true,
                ),
                min: 0,
                max: Infinity,
              },
            ];
      if (merged.length > 0 && merged[0]!.dfa.free[0] === 1) return merged.map(alternative);
      return [...merged, ...sets.filter((set) => set.min > 0 || set.max < Infinity)].map(alternative);
    },
    unionOf(terms) {
      const sets = terms.map(builder.textSet).filter((set) => set !== null);
      if (sets.length === 0) return productDfa([any], () => 0, fuel);
      return combine(sets.map(withLengths), true);
    },
    numbers(terms) {
      const result: NumberAlternative[] = [];
      for (const atoms of terms) {
        fuel.burn(50, 'a set of numbers');
        const set = numberSet(atoms);
        if (!isNumberPrefix(set, '', fuel)) continue;
        const shortest = completeNumber(set, '', fuel);
        if (shortest !== null) result.push({ kind: 'number', set, shortest });
      }
      return result;
    },
    isContradiction(atoms) {
      const first = atoms[0]?.kind;
      if (first === 'text' || first === 'length') return builder.textSet(atoms) === null;
      if (first === 'number') return !isNumberPrefix(numberSet(atoms), '', fuel);
      return first === 'boolean' && new Set(atoms.map((atom) => atom.kind === 'boolean' && atom.value)).size > 1;
    },
  };
  return builder;
}

function numberSet(atoms: readonly Atom[]): NumberSet {
  let set = ALL_NUMBERS;
  for (const atom of atoms) if (atom.kind === 'number') set = intersectNumbers(set, atom.set);
  return set;
}
