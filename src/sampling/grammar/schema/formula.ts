import type { Dfa } from '../automata/automaton.ts';
import type { Fuel } from '../limits.ts';
import type { NumberSet } from '../numbers/number-set.ts';
import { numberSetKey } from '../numbers/number-set.ts';
import { negateAtom } from './negate.ts';
import { TYPE, type TypeBit, ALL_TYPES, type Atom, type Formula, type Formulas } from './formula-types.ts';

const TYPE_OF_ATOM: Record<Atom['kind'], TypeBit> = {
  boolean: TYPE.boolean,
  number: TYPE.number,
  text: TYPE.string,
  length: TYPE.string,
  item: TYPE.array,
  items: TYPE.array,
  'item-count': TYPE.array,
  contains: TYPE.array,
  unique: TYPE.array,
  property: TYPE.object,
  required: TYPE.object,
  keys: TYPE.object,
  'some-key': TYPE.object,
  'key-count': TYPE.object,
};

function atomKey(atom: Atom): string {
  const rest = Object.entries(atom).map(([name, value]) => {
    if (name === 'goal') return (value as Formula).id;
    if (name === 'dfa' || name === 'names') return (value as Dfa).id;
    if (name === 'set') return numberSetKey(value as NumberSet);
    return name === 'pointer' ? '' : JSON.stringify(value === Infinity ? 'inf' : value);
  });
  return rest.join('|');
}

// With its entries in the tables keyed by its id.
const FORMULA_BYTES = 400;

/** Creates formulas, each only once. */
export function createFormulas(fuel: Fuel): Formulas {
  const known = new Map<string, Formula>();
  const negations = new Map<number, Formula>();
  const intern = (key: string, make: (id: number) => Formula): Formula => {
    fuel.burn(4 + (key.length >> 3), 'the schema');
    let formula = known.get(key);
    if (formula === undefined) {
      fuel.hold(FORMULA_BYTES + 2 * key.length);
      known.set(key, (formula = make(known.size)));
    }
    return formula;
  };
  const types = (bits: number): Formula => intern(`t${bits}`, (id) => ({ id, kind: 'types', types: bits }));
  const always = types(ALL_TYPES);
  const never = types(0);

  /** `and` and `or` are dual: the neutral element of one decides the other. */
  const join = (kind: 'and' | 'or', parts: readonly Formula[]): Formula => {
    const [unit, zero] = kind === 'and' ? [always, never] : [never, always];
    const flat = new Map<number, Formula>();
    let bits = kind === 'and' ? ALL_TYPES : 0;
    const add = (part: Formula): void => {
      if (part.kind === kind) part.parts.forEach(add);
      else if (part.kind === 'types') bits = kind === 'and' ? bits & part.types : bits | part.types;
      else flat.set(part.id, part);
    };
    fuel.burn(parts.length, 'the schema');
    parts.forEach(add);
    if (bits === (zero as { types: number }).types) return zero;
    if (bits !== (unit as { types: number }).types) flat.set(types(bits).id, types(bits));
    if (flat.size === 0) return unit;
    const list = [...flat.values()].sort((a, b) => a.id - b.id);
    if (list.length === 1) return list[0]!;
    return intern(`${kind}${list.map((part) => part.id).join()}`, (id) => ({ id, kind, parts: list }) as Formula);
  };

  const formulas: Formulas = {
    fuel,
    always,
    never,
    types,
    and: (parts) => join('and', parts),
    or: (parts) => join('or', parts),
    atom: (atom) => intern(`a${atomKey(atom)}`, (id) => ({ id, kind: 'atom', type: TYPE_OF_ATOM[atom.kind], atom })),
    whenTyped: (atom) => join('or', [types(ALL_TYPES & ~TYPE_OF_ATOM[atom.kind]), formulas.atom(atom)]),
    schema: (node, isNegated = false) =>
      intern(`s${node}${isNegated ? '-' : ''}`, (id) => ({ id, kind: 'schema', node, isNegated })),
    not(formula) {
      const made = negations.get(formula.id);
      if (made !== undefined) return made;
      const result = ((): Formula => {
        if (formula.kind === 'types') return types(ALL_TYPES & ~formula.types);
        if (formula.kind === 'schema') return formulas.schema(formula.node, !formula.isNegated);
        if (formula.kind === 'and') return join('or', formula.parts.map(formulas.not));
        if (formula.kind === 'or') return join('and', formula.parts.map(formulas.not));
        return join('or', [types(ALL_TYPES & ~formula.type), negateAtom(formulas, formula.atom)]);
      })();
      negations.set(formula.id, result);
      return result;
    },
  };
  return formulas;
}
