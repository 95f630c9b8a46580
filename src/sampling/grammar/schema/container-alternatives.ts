import { countTexts, listTexts } from '../automata/dfa-measures.ts';
import type { Dfa } from '../automata/automaton.ts';
import { dfaOfTexts, productDfa } from '../automata/dfa.ts';
import { unsupported } from '../limits.ts';
import type { ArrayAlternative, Contains, KeyClass, ObjectAlternative } from './alternatives.ts';
import type { Atom, Formula, Formulas } from './formula-types.ts';

// Each doubles the choices per item or property.
const MAX_CONTAINS = 4;
const MAX_SOMES = 4;
// Counted one by one: items with `contains`, properties, or values with `uniqueItems`.
const MAX_COUNTED = 512;

export function arrayAlternative(formulas: Formulas, atoms: readonly Atom[]): ArrayAlternative | null {
  let [min, max] = [0, Infinity];
  let numPrefix = 0;
  let unique: string | null = null;
  const contains: Contains[] = [];
  for (const atom of atoms) {
    if (atom.kind === 'item-count') [min, max] = [Math.max(min, atom.min), Math.min(max, atom.max)];
    else if (atom.kind === 'item') numPrefix = Math.max(numPrefix, atom.index + 1);
    else if (atom.kind === 'items') numPrefix = Math.max(numPrefix, atom.from);
    else if (atom.kind === 'unique') unique = atom.pointer;
    else if (atom.kind === 'contains') {
      numPrefix = Math.max(numPrefix, atom.from);
      if (atom.min > 0 || atom.max < Infinity) contains.push(atom);
    }
  }
  if (contains.length > MAX_CONTAINS)
    throw unsupported('contains', null, `more than ${MAX_CONTAINS} apply to one array`);
  const counted = Math.max(min, ...contains.map((one) => one.min));
  if (contains.length > 0 && counted > MAX_COUNTED) {
    throw unsupported('contains', null, `with a minimum of ${counted} items, the limit is ${MAX_COUNTED}`);
  }
  if (unique !== null && min > MAX_COUNTED)
    throw unsupported('uniqueItems', unique, `with minItems ${min}, the limit is ${MAX_COUNTED}`);
  const goalAt = (index: number): Formula =>
    formulas.and(
      atoms.flatMap((atom) => {
        if (atom.kind === 'item') return atom.index === index ? [atom.goal] : [];
        return atom.kind === 'items' && atom.from <= index ? [atom.goal] : [];
      }),
    );
  const prefix = Array.from({ length: numPrefix }, (_, index) => goalAt(index));
  const rest = goalAt(numPrefix + 1e9);
  const never = prefix.indexOf(formulas.never);
  if (never >= 0) max = Math.min(max, never);
  if (rest === formulas.never) max = Math.min(max, numPrefix);
  if (min > max) return null;
  const parts = [prefix.map((goal) => goal.id).join(), rest.id, min, max, unique === null ? '' : 'u'];
  const key = `${parts.join(';')};${contains.map((one) => [one.from, one.goal.id, one.min, one.max].join(':')).join()}`;
  return { kind: 'array', key, prefix, rest, min, max, contains, unique };
}

export function objectAlternative(formulas: Formulas, atoms: readonly Atom[]): ObjectAlternative | null {
  let [min, max] = [0, Infinity];
  const names = new Map<string, Formula[]>();
  const required = new Set<string>();
  const keys: { names: Dfa; goal: Formula }[] = [];
  const somes: { names: Dfa; goal: Formula }[] = [];
  const goalsOf = (name: string): Formula[] => {
    if (!names.has(name)) names.set(name, []);
    return names.get(name)!;
  };
  for (const atom of atoms) {
    if (atom.kind === 'key-count') [min, max] = [Math.max(min, atom.min), Math.min(max, atom.max)];
    else if (atom.kind === 'property') goalsOf(atom.name).push(atom.goal);
    else if (atom.kind === 'required') {
      goalsOf(atom.name);
      required.add(atom.name);
    } else if (atom.kind === 'keys') keys.push(atom);
    else if (atom.kind === 'some-key') somes.push(atom);
  }
  min = Math.max(min, required.size);
  if (min > max) return null;
  if (somes.length > MAX_SOMES)
    throw unsupported('not', null, `more than ${MAX_SOMES} negated property maps apply to one object`);
  if (min > MAX_COUNTED + required.size)
    throw unsupported('minProperties', null, `${min}, the limit is ${MAX_COUNTED}`);

  const classes: KeyClass[] = [];
  const automaton = nameAutomaton(formulas, [...names], required, keys, somes, classes);
  for (const one of classes) {
    if (one.name === null)
      (one as { size: number }).size = countTexts(automaton, formulas.fuel, (label) => label === one.label)[0]!;
  }
  const listed = new Set(classes.map((one) => one.name));
  for (const name of required) if (!listed.has(name)) return null;
  const reachable = reachableLabels(automaton, formulas);
  for (const one of classes) {
    (one as { texts: KeyClass['texts'] }).texts = (limit) =>
      one.name === null ? listTexts(automaton, limit, formulas.fuel, (label) => label === one.label) : [one.name];
  }
  const shown = classes.map(
    (one) =>
      `${one.name === null ? '*' : JSON.stringify(one.name)}${one.isRequired ? '!' : ''}${one.goal.id}/${one.someBits}`,
  );
  const key = `${automaton.id};${min};${max};${shown.join()};${somes.map((one) => one.goal.id).join()}`;
  return { kind: 'object', key, names: automaton, classes, reachable, somes: somes.map((one) => one.goal), min, max };
}

function reachableLabels(automaton: Dfa, { fuel }: Formulas): number[][] {
  const sets = Array.from(automaton.labels, (label) => new Set(label === 0 ? [] : [label]));
  for (let isChanged = true; isChanged;) {
    isChanged = false;
    for (let q = automaton.numStates - 1; q >= 0; q--) {
      const before = sets[q]!.size;
      for (let e = automaton.offsets[q]!; e < automaton.offsets[q + 1]!; e++) {
        const next = sets[automaton.to[e]!]!;
        fuel.burn(1 + next.size, 'property names');
        if (next !== sets[q]) for (const label of next) sets[q]!.add(label);
      }
      isChanged ||= sets[q]!.size > before;
    }
  }
  return sets.map((set) => [...set].sort((a, b) => a - b));
}

/** Product of the listed names and all patterns; the combined labels give a name's class. */
function nameAutomaton(
  formulas: Formulas,
  names: readonly (readonly [string, readonly Formula[]])[],
  required: ReadonlySet<string>,
  keys: readonly { names: Dfa; goal: Formula }[],
  somes: readonly { names: Dfa; goal: Formula }[],
  classes: KeyClass[],
): Dfa {
  const { fuel } = formulas;
  const listed = dfaOfTexts(
    names.map(([name], i) => [name, i + 1] as const),
    fuel,
  );
  const labels = new Map<string, number>();
  const classOf = (found: readonly number[]): number => {
    const key = found.join();
    const known = labels.get(key);
    if (known !== undefined) return known;
    const entry = found[0] === 0 ? null : names[found[0]! - 1]!;
    const goals = keys.filter((_, i) => found[i + 1] !== 0).map((one) => one.goal);
    const goal = formulas.and([...(entry?.[1] ?? []), ...goals]);
    let someBits = 0;
    somes.forEach((_, i) => (someBits |= found[1 + keys.length + i] === 0 ? 0 : 1 << i));
    let label = 0;
    if (goal !== formulas.never) {
      label = classes.length + 1;
      const name = entry?.[0] ?? null;
      const isRequired = name !== null && required.has(name);
      classes.push({ label, name, goal, someBits, isRequired, size: 1, texts: () => [] });
    }
    labels.set(key, label);
    return label;
  };
  return productDfa([listed, ...keys.map((one) => one.names), ...somes.map((one) => one.names)], classOf, fuel);
}
