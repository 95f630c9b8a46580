import { complementDfa } from '../automata/dfa.ts';
import { unsupported } from '../limits.ts';
import type { Bound, NumberSet } from '../numbers/number-set.ts';
import { ALL_NUMBERS } from '../numbers/number-set.ts';
import type { Atom, Formula, Formulas } from './formula-types.ts';

type AtomOf<K extends Atom['kind']> = Extract<Atom, { kind: K }>;
type Negations = { [K in Atom['kind']]: (formulas: Formulas, atom: AtomOf<K>) => Formula };

function outside(formulas: Formulas, kind: 'length' | 'item-count' | 'key-count', min: number, max: number): Formula {
  const parts: Formula[] = [];
  if (min > 0) parts.push(formulas.atom({ kind, min: 0, max: min - 1 }));
  if (max < Infinity) parts.push(formulas.atom({ kind, min: max + 1, max: Infinity }));
  return formulas.or(parts);
}

function negateNumbers(formulas: Formulas, set: NumberSet): Formula {
  const parts: NumberSet[] = [];
  const flip = (bound: Bound): Bound => ({ value: bound.value, isOpen: !bound.isOpen });
  if (set.min !== null) parts.push({ ...ALL_NUMBERS, max: flip(set.min) });
  if (set.max !== null) parts.push({ ...ALL_NUMBERS, min: flip(set.max) });
  if (set.step !== null) parts.push({ ...ALL_NUMBERS, notSteps: [set.step] });
  for (const step of set.notSteps) parts.push({ ...ALL_NUMBERS, step });
  for (const value of set.excluded) {
    parts.push({ ...ALL_NUMBERS, min: { value, isOpen: false }, max: { value, isOpen: false } });
  }
  return formulas.or(parts.map((part) => formulas.atom({ kind: 'number', set: part })));
}

/** For each requirement, the values of the same type that fail it. */
const NEGATIONS: Negations = {
  boolean: (formulas, { value }) => formulas.atom({ kind: 'boolean', value: !value }),
  number: (formulas, { set }) => negateNumbers(formulas, set),
  text: (formulas, { dfa }) => formulas.atom({ kind: 'text', dfa: complementDfa(dfa, formulas.fuel) }),
  length: (formulas, { min, max }) => outside(formulas, 'length', min, max),
  item: (formulas, { index, goal }) =>
    formulas.and([
      formulas.atom({ kind: 'item-count', min: index + 1, max: Infinity }),
      formulas.atom({ kind: 'item', index, goal: formulas.not(goal) }),
    ]),
  items: (formulas, { from, goal }) =>
    formulas.atom({ kind: 'contains', from, goal: formulas.not(goal), min: 1, max: Infinity }),
  'item-count': (formulas, { min, max }) => outside(formulas, 'item-count', min, max),
  contains(formulas, { from, goal, min, max }) {
    const parts: Formula[] = [];
    if (min > 0) parts.push(formulas.atom({ kind: 'contains', from, goal, min: 0, max: min - 1 }));
    if (max < Infinity) parts.push(formulas.atom({ kind: 'contains', from, goal, min: max + 1, max: Infinity }));
    return formulas.or(parts);
  },
  unique(_, { pointer }) {
    throw unsupported('uniqueItems', pointer, 'cannot be enforced where it may or must fail (not, oneOf, if)');
  },
  property: (formulas, { name, goal }) =>
    formulas.and([
      formulas.atom({ kind: 'required', name }),
      formulas.atom({ kind: 'property', name, goal: formulas.not(goal) }),
    ]),
  required: (formulas, { name }) => formulas.atom({ kind: 'property', name, goal: formulas.never }),
  keys: (formulas, { names, goal }) => formulas.atom({ kind: 'some-key', names, goal: formulas.not(goal) }),
  'some-key': (formulas, { names, goal }) => formulas.atom({ kind: 'keys', names, goal: formulas.not(goal) }),
  'key-count': (formulas, { min, max }) => outside(formulas, 'key-count', min, max),
};

/** Values of the atom's type that fail it. */
export function negateAtom(formulas: Formulas, atom: Atom): Formula {
  return (NEGATIONS[atom.kind] as (formulas: Formulas, atom: Atom) => Formula)(formulas, atom);
}
