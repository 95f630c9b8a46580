import { unsupported } from '../limits.ts';
import type { Atom, Formula, TypeBit } from './formula-types.ts';
import type { SchemaReader } from './reader-types.ts';

type AtomFormula = Extract<Formula, { kind: 'atom' }>;

/** The obligations of one branch so far. */
interface Branch {
  readonly atoms: ReadonlyMap<number, AtomFormula>;
  readonly ors: ReadonlyMap<number, Formula>;
  readonly schemas: ReadonlySet<number>;
}

/** A branch whose pending formulas are not expanded yet. */
interface OpenBranch {
  readonly pending: Formula[];
  readonly from: Branch;
}

/** Expands a formula for values of one type: each term is a list of atoms that must all hold. */
export interface TermReader {
  read(formula: Formula, type: TypeBit): Atom[][];
  /** The same; yields where it may be interrupted. */
  readInParts(formula: Formula, type: TypeBit): Generator<undefined, Atom[][]>;
}

// Look-ahead before taking a branch, and depth of the search for contradictions.
const MAX_GLANCE = 8;
const MAX_NESTED = 3;
// In-place references (allOf, $ref, …) in a row.
const MAX_CHAIN = 500;

export function createTermReader(
  reader: SchemaReader,
  isContradiction: (atoms: readonly Atom[]) => boolean,
): TermReader {
  const { formulas } = reader;
  const { fuel } = formulas;
  const guarded = new Set<number>();
  let nested = 0;

  const inPlace = (formula: Formula, found: number[]): number[] => {
    if (formula.kind === 'schema') found.push(formula.node);
    else if (formula.kind === 'and' || formula.kind === 'or') for (const part of formula.parts) inPlace(part, found);
    return found;
  };
  /** A schema that refers back to itself without a value in between is meaningless. */
  const checkGuarded = (node: number, chain: readonly number[]): void => {
    if (guarded.has(node)) return;
    const { pointer } = reader.placeOf(node);
    if (chain.includes(node)) throw unsupported('$ref', pointer, 'the schema refers to itself in place endlessly');
    if (chain.length > MAX_CHAIN) throw unsupported('$ref', pointer, `more than ${MAX_CHAIN} references in a row`);
    for (const next of inPlace(reader.read(node), [])) checkGuarded(next, [...chain, node]);
    guarded.add(node);
  };
  const resolve = (formula: Extract<Formula, { kind: 'schema' }>): Formula => {
    checkGuarded(formula.node, []);
    const positive = reader.read(formula.node);
    return formula.isNegated ? formulas.not(positive) : positive;
  };

  /** True or false if that is obvious within the branch, otherwise null. */
  const glance = (formula: Formula, type: TypeBit, branch: Branch, depth: number): boolean | null => {
    fuel.burn(1, 'combining the schema');
    if (formula.kind === 'types') return (formula.types & type) !== 0;
    if (formula.kind === 'atom') {
      if (formula.type !== type) return false;
      return branch.atoms.has(formula.id) ? true : judgeAtom(formula.atom, branch);
    }
    if (formula.kind === 'schema') {
      if (branch.schemas.has(formula.id)) return true;
      if (branch.schemas.has(formulas.not(formula).id)) return false;
      return depth > MAX_GLANCE ? null : glance(resolve(formula), type, branch, depth + 1);
    }
    if (depth > MAX_GLANCE) return null;
    let verdict: boolean | null = formula.kind === 'and';
    for (const part of formula.parts) {
      const seen = glance(part, type, branch, depth + 1);
      if (seen === (formula.kind === 'or')) return seen;
      if (seen === null) verdict = null;
    }
    return verdict;
  };

  /** Properties with fixed values distinguish branches: the branch's requirement on a property may settle the atom. */
  const judgeAtom = (atom: Atom, branch: Branch): boolean | null => {
    if (atom.kind === 'property') {
      const goals: Formula[] = [];
      let isRequired = false;
      for (const { atom: other } of branch.atoms.values()) {
        if (other.kind === 'property' && other.name === atom.name) goals.push(other.goal);
        isRequired ||= other.kind === 'required' && other.name === atom.name;
      }
      if (goals.length === 0) return null;
      if (isNever(formulas.and([...goals, formulas.not(atom.goal)]))) return true;
      return isRequired && isNever(formulas.and([...goals, atom.goal])) ? false : null;
    }
    if (atom.kind === 'required') {
      for (const { atom: other } of branch.atoms.values()) {
        if (other.kind === 'property' && other.name === atom.name && isNever(other.goal)) return false;
      }
    }
    return null;
  };

  /** Whether the formula is obviously unsatisfiable; false may mean "not detected". */
  const isNever = (formula: Formula): boolean => {
    if (formula === formulas.never) return true;
    if (nested >= MAX_NESTED) return false;
    nested++;
    try {
      return [1, 2, 4, 8, 16, 32].every((type) => read(formula, type as TypeBit).every(isContradiction));
    } finally {
      nested--;
    }
  };

  /** Adds the term of a branch, or the branches that it divides into. A stack, because a recursion could not be interrupted. */
  const expandLast = (stack: OpenBranch[], type: TypeBit, terms: Atom[][]): void => {
    const { pending, from } = stack.pop()!;
    fuel.burn(4 * (from.atoms.size + from.ors.size + from.schemas.size), 'combining the schema');
    const atoms = new Map(from.atoms);
    const ors = new Map(from.ors);
    const schemas = new Set(from.schemas);
    const branch: Branch = { atoms, ors, schemas };
    for (let isOpen = true; isOpen;) {
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        fuel.burn(4, 'combining the schema');
        if (next.kind === 'types') {
          if ((next.types & type) === 0) return;
        } else if (next.kind === 'atom') {
          if (next.type !== type) return;
          atoms.set(next.id, next);
        } else if (next.kind === 'schema') {
          if (schemas.has(formulas.not(next).id)) return;
          if (!schemas.has(next.id)) {
            schemas.add(next.id);
            pending.push(resolve(next));
          }
        } else if (next.kind === 'and') pending.push(...next.parts);
        else ors.set(next.id, next);
      }
      isOpen = false;
      for (const [id, or] of ors) {
        const open: Formula[] = [];
        let isTrue = false;
        for (const part of (or as { parts: readonly Formula[] }).parts) {
          const seen = glance(part, type, branch, 0);
          if (seen === null) open.push(part);
          isTrue ||= seen === true;
          if (isTrue) break;
        }
        if (!isTrue && open.length === 0) return;
        if (isTrue || open.length === 1) ors.delete(id);
        if (!isTrue && open.length === 1) {
          pending.push(open[0]!);
          isOpen = true;
        }
        if (!isTrue && open.length > 1 && open.length < (or as { parts: readonly Formula[] }).parts.length) {
          const smaller = formulas.or(open);
          ors.delete(id);
          ors.set(smaller.id, smaller);
        }
      }
    }
    let best: Formula | null = null;
    const size = (or: Formula): number => (or as { parts: readonly Formula[] }).parts.length;
    for (const or of ors.values()) if (best === null || size(or) < size(best)) best = or;
    if (best === null) {
      terms.push([...atoms.values()].map((atom) => atom.atom));
      const { maxAlternatives } = fuel.limits;
      if (terms.length > maxAlternatives) {
        throw unsupported('anyOf/oneOf/not', null, `more than ${maxAlternatives} alternatives when expanded`);
      }
      return;
    }
    ors.delete(best.id);
    for (const part of (best as { parts: readonly Formula[] }).parts.toReversed()) {
      stack.push({ pending: [part], from: branch });
    }
  };

  const startAt = (formula: Formula): OpenBranch[] => [
    { pending: [formula], from: { atoms: new Map(), ors: new Map(), schemas: new Set() } },
  ];
  const read: TermReader['read'] = (formula, type) => {
    const terms: Atom[][] = [];
    for (const stack = startAt(formula); stack.length > 0;) expandLast(stack, type, terms);
    return terms;
  };
  return {
    read,
    *readInParts(formula, type) {
      const terms: Atom[][] = [];
      for (const stack = startAt(formula); stack.length > 0;) {
        expandLast(stack, type, terms);
        yield;
      }
      return terms;
    },
  };
}
