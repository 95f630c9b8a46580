import { dfaStep } from '../automata/dfa.ts';
import { shortestText } from '../automata/dfa-measures.ts';
import { unsupported } from '../limits.ts';
import type { Alternatives, ArrayAlternative, ObjectAlternative, TextAlternative } from './alternatives.ts';
import { arrayAlternative, objectAlternative } from './container-alternatives.ts';
import type { Formula } from './formula-types.ts';
import { TYPE } from './formula-types.ts';
import type { CostOf } from './plans.ts';
import { itemChoices, planArray, planObject, propertyGoal, EMPTY_OBJECT } from './plans.ts';
import { createScalarBuilder } from './scalar-alternatives.ts';
import type { SchemaReader } from './reader-types.ts';
import { createTermReader } from './terms.ts';
import type { UniqueItems, Solver } from './unique-items.ts';
import { createUniqueItems } from './unique-items.ts';

const EMPTY_ARRAY = { numItems: 0 };

export function textCost(text: TextAlternative): number {
  return 2 + (text.min > 0 ? text.min : text.distances.bytes[0]!);
}

export function writeText(text: TextAlternative, state: number, length: number): string {
  if (text.min > length) return 'a'.repeat(text.min - length);
  return shortestText(text.distances, state, (q, code) => dfaStep(text.dfa, q, code));
}

export function createSolver(reader: SchemaReader): Solver {
  const { formulas } = reader;
  const { fuel } = formulas;
  const scalars = createScalarBuilder(fuel);
  const terms = createTermReader(reader, scalars.isContradiction);
  const all = new Map<number, Alternatives>();
  const live = new Map<number, Alternatives>();
  const costs = new Map<number, number>();
  const expanding = new Set<number>();

  const expand = (goal: Formula): Alternatives => {
    const steps = expandInParts(goal);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  };

  /** Yields where it may be interrupted. */
  function* expandInParts(goal: Formula): Generator<undefined, Alternatives> {
    const known = all.get(goal.id);
    if (known !== undefined) return known;
    const booleans = new Set<boolean>();
    for (const atoms of yield* terms.readInParts(goal, TYPE.boolean)) {
      for (const value of [true, false]) {
        if (atoms.every((atom) => atom.kind === 'boolean' && atom.value === value)) booleans.add(value);
      }
    }
    const isNull = (yield* terms.readInParts(goal, TYPE.null)).length > 0;
    const numbers = scalars.numbers(yield* terms.readInParts(goal, TYPE.number));
    yield;
    const texts = scalars.texts(yield* terms.readInParts(goal, TYPE.string));
    yield;
    // Equal alternatives are one.
    const distinctArrays = new Map<string, ArrayAlternative>();
    for (const atoms of yield* terms.readInParts(goal, TYPE.array)) {
      yield;
      const array = arrayAlternative(formulas, atoms);
      if (array !== null) distinctArrays.set(array.key, array);
    }
    yield;
    const distinctObjects = new Map<string, ObjectAlternative>();
    for (const atoms of yield* terms.readInParts(goal, TYPE.object)) {
      yield;
      const object = objectAlternative(formulas, atoms);
      if (object !== null) distinctObjects.set(object.key, object);
    }
    yield;
    // The distinct values, and so the possible items, must be known here already.
    if (expanding.has(goal.id))
      throw unsupported('uniqueItems', null, 'cannot be enforced on items that contain such arrays again');
    expanding.add(goal.id);
    const arrays = [...distinctArrays.values()].filter(canBeUnique);
    expanding.delete(goal.id);
    const objects = [...distinctObjects.values()];
    const result: Alternatives = { isNull, booleans: [...booleans], numbers, texts, arrays, objects };
    all.set(goal.id, result);
    return result;
  }

  const canBeUnique = (array: ArrayAlternative): boolean => {
    if (array.unique === null) return true;
    if (array.contains.length > 0)
      throw unsupported('uniqueItems', array.unique, 'cannot be enforced together with contains');
    const goals = array.max <= array.prefix.length ? array.prefix.slice(0, array.max) : [...array.prefix, array.rest];
    for (const goal of goals) checkOpen(goal, array.unique);
    return solver.unique.complete({ array, numItems: 0, read: [] }) !== null;
  };
  /** Arrays and objects as unique items: one that equals an earlier item must be able to continue. */
  const checkOpen = (goal: Formula, pointer: string): void => {
    const found = solver.alternatives(goal);
    const isOpenObject = (object: ObjectAlternative): boolean =>
      object.max === Infinity &&
      object.classes.some((one) => one.name === null && one.size === Infinity && solver.cost(one.goal) < Infinity);
    const isOpenArray = (array: ArrayAlternative): boolean =>
      array.max === Infinity && array.contains.length === 0 && solver.cost(array.rest) < Infinity;
    if (!found.objects.every(isOpenObject)) {
      throw unsupported('uniqueItems', pointer, 'cannot be enforced on objects without additional properties');
    }
    if (found.arrays.some((array) => array.unique !== null)) {
      throw unsupported('uniqueItems', pointer, 'cannot be enforced on arrays that have unique items themselves');
    }
    if (!found.arrays.every(isOpenArray)) {
      throw unsupported('uniqueItems', pointer, 'cannot be enforced on arrays of bounded length');
    }
  };

  const goalsInside = ({ arrays, objects }: Alternatives): Formula[] => {
    const goals: Formula[] = [];
    for (const array of arrays) {
      const last = array.max <= array.prefix.length ? array.max - 1 : array.prefix.length;
      for (let index = 0; index <= last; index++) {
        for (const choice of itemChoices(formulas, array, index)) goals.push(choice.goal);
      }
    }
    for (const object of objects) {
      for (const one of object.classes) {
        for (let bits = 0; bits < 1 << object.somes.length; bits++) {
          if ((bits & ~one.someBits) === 0) goals.push(propertyGoal(formulas, object, one, bits));
        }
      }
    }
    return goals;
  };
  const arrayCost = (array: ArrayAlternative, costOf: CostOf): number => {
    if (array.unique !== null) return uniqueArray(array).length;
    const plan = planArray(formulas, array, { ...EMPTY_ARRAY, counts: array.contains.map(() => 0) }, costOf);
    return plan === null ? Infinity : plan.bytes + 1;
  };
  const uniqueArray = (array: ArrayAlternative): string =>
    `[${solver.unique.complete({ array, numItems: 0, read: [] })!.join()}]`;
  const objectCost = (object: ObjectAlternative, costOf: CostOf): number => {
    fuel.burn(4 * object.classes.length, 'the schema');
    return (planObject(formulas, object, EMPTY_OBJECT, costOf)?.bytes ?? Infinity) + 1;
  };
  const cheapest = (found: Alternatives, costOf: CostOf): number => {
    let best = found.isNull ? 4 : Infinity;
    for (const value of found.booleans) best = Math.min(best, value ? 4 : 5);
    for (const number of found.numbers) best = Math.min(best, number.shortest.length);
    for (const text of found.texts) best = Math.min(best, textCost(text));
    for (const array of found.arrays) best = Math.min(best, arrayCost(array, costOf));
    for (const object of found.objects) best = Math.min(best, objectCost(object, costOf));
    return best;
  };

  /**
   * Costs of everything reachable from a goal: the least fixed point, lowered from "unsatisfiable". Yields where it may be
   * interrupted.
   */
  function* solve(goal: Formula): Generator<undefined, void> {
    if (costs.has(goal.id)) return;
    const open = new Map<number, Formula>([[goal.id, goal]]);
    for (const next of open.values()) {
      yield;
      const alternatives = yield* expandInParts(next);
      for (const inner of goalsInside(alternatives)) if (!costs.has(inner.id)) open.set(inner.id, inner);
    }
    const found = new Map<number, number>();
    const costOf: CostOf = (inner) => costs.get(inner.id) ?? found.get(inner.id) ?? Infinity;
    const order = [...open.values()].toReversed();
    for (let isChanged = true; isChanged;) {
      isChanged = false;
      for (const next of order) {
        yield;
        fuel.burn(4, 'the schema');
        const cost = cheapest(expand(next), costOf);
        if (cost >= (found.get(next.id) ?? Infinity)) continue;
        found.set(next.id, cost);
        isChanged = true;
      }
    }
    for (const id of open.keys()) costs.set(id, found.get(id) ?? Infinity);
  }

  const solver: Solver = {
    solve,
    cost(goal) {
      if (!costs.has(goal.id)) for (const _ of solve(goal));
      return costs.get(goal.id)!;
    },
    alternatives(goal) {
      let found = live.get(goal.id);
      if (found === undefined) {
        solver.cost(goal);
        const raw = expand(goal);
        found = {
          ...raw,
          arrays: raw.arrays.filter((array) => arrayCost(array, solver.cost) < Infinity),
          objects: raw.objects.filter((object) => objectCost(object, solver.cost) < Infinity),
        };
        live.set(goal.id, found);
      }
      return found;
    },
    witness(goal, maxBytes) {
      const cost = solver.cost(goal);
      if (cost > maxBytes) return null;
      const found = solver.alternatives(goal);
      if (found.isNull && cost === 4) return 'null';
      for (const value of found.booleans) if (cost === (value ? 4 : 5)) return String(value);
      for (const number of found.numbers) if (cost === number.shortest.length) return number.shortest;
      for (const text of found.texts) if (cost === textCost(text)) return JSON.stringify(writeText(text, 0, 0));
      for (const array of found.arrays) {
        if (cost !== arrayCost(array, solver.cost)) continue;
        if (array.unique !== null) return uniqueArray(array);
        const start = { numItems: 0, counts: array.contains.map(() => 0) };
        return `[${solver.writeArray(planArray(formulas, array, start, solver.cost)!, true, maxBytes)}`;
      }
      for (const object of found.objects) {
        if (cost !== objectCost(object, solver.cost)) continue;
        return `{${solver.writeObject(planObject(formulas, object, EMPTY_OBJECT, solver.cost)!, true, maxBytes)}`;
      }
      throw unsupported('schema', null, 'no value of the expected size found');
    },
    writeArray(plan, isFirst, maxBytes) {
      if (plan.bytes > maxBytes) return null;
      const texts = plan.items.flatMap(({ goal, times }) => Array<string>(times).fill(solver.witness(goal, maxBytes)!));
      return `${isFirst || texts.length === 0 ? '' : ','}${texts.join()}]`;
    },
    writeObject(plan, isFirst, maxBytes) {
      if (plan.bytes > maxBytes) return null;
      const texts = plan.entries.map(({ name, goal }) => `${JSON.stringify(name)}:${solver.witness(goal, maxBytes)}`);
      return `${isFirst || texts.length === 0 ? '' : ','}${texts.join()}}`;
    },
    unique: undefined as unknown as UniqueItems,
    textsOf: (goal) => scalars.unionOf(terms.read(goal, TYPE.string)),
  };
  (solver as { unique: UniqueItems }).unique = createUniqueItems(formulas, solver);
  return solver;
}
