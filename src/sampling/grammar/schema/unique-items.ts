import { listTexts } from '../automata/dfa-measures.ts';
import { canonicalDecimal, parseDecimal } from '../numbers/decimal.ts';
import type { NumberSet } from '../numbers/number-set.ts';
import { listNumbers } from '../numbers/number-set.ts';
import { completeNumber } from '../numbers/number-text.ts';
import type { Formula, Formulas } from './formula-types.ts';
import { EMPTY_OBJECT, itemGoal, planObject } from './plans.ts';
import type { ArrayAlternative, Alternatives } from './alternatives.ts';
import type { CostOf, ArrayPlan, ObjectPlan } from './plans.ts';
import type { Dfa } from '../automata/automaton.ts';

/** A value in two spellings: canonical and to be written. */
export interface Sample {
  readonly canonical: string;
  readonly text: string;
}

/** An array so far: the number of items and their canonical texts. */
export interface UniqueProgress {
  readonly array: ArrayAlternative;
  readonly numItems: number;
  readonly read: readonly string[] | null;
}

/** `uniqueItems`: which values an item may take, so that enough remain for later items. */
export interface UniqueItems {
  /** Values that the next item must not have; null if no value is left. */
  watch(thread: UniqueProgress, goal: Formula): { readonly excluded: readonly string[] } | null;
  /** Distinct values for the items still required; null if there are not enough. */
  complete(thread: UniqueProgress): readonly string[] | null;
  /** The shortest value that is not excluded. */
  pick(goal: Formula, excluded: readonly string[]): string | null;
}

export function createUniqueItems(formulas: Formulas, solver: Solver): UniqueItems {
  const { fuel } = formulas;
  const samples = new Map<string, Sample[]>();

  /** Up to `limit` distinct values; fewer if there are no more. */
  const sample = (goal: Formula, limit: number): Sample[] => {
    const key = `${goal.id};${limit}`;
    const known = samples.get(key);
    if (known !== undefined) return known;
    const found = solver.alternatives(goal);
    const values = new Map<string, Sample>();
    const add = (canonical: string, text: string): void => {
      const old = values.get(canonical);
      if (old === undefined || old.text.length > text.length) values.set(canonical, { canonical, text });
    };
    if (found.isNull) add('null', 'null');
    for (const value of found.booleans) add(String(value), String(value));
    for (const { set } of found.numbers)
      for (const text of numberTexts(set, limit)) add(canonicalDecimal(parseDecimal(text)), text);
    for (const text of found.texts) {
      const pad = 'a'.repeat(text.min);
      for (const one of listTexts(text.dfa, limit, fuel)) {
        if ([...pad, ...one].length <= text.max) add(JSON.stringify(pad + one), JSON.stringify(pad + one));
      }
    }
    for (const array of found.arrays) {
      const item = solver.witness(array.rest, 10_000)!;
      const first = array.prefix.map((goal) => solver.witness(goal, 10_000)!);
      for (let length = array.min; length < array.min + limit; length++) {
        const items = [...first.slice(0, length), ...Array<string>(Math.max(0, length - first.length)).fill(item)];
        add(canonicalText(`[${items.join()}]`), `[${items.join()}]`);
      }
    }
    for (const object of found.objects) {
      const plan = planObject(formulas, object, EMPTY_OBJECT, solver.cost)!;
      const entries = plan.entries.map(({ name, goal }) => `${JSON.stringify(name)}:${solver.witness(goal, 10_000)}`);
      add(canonicalText(`{${entries.join()}}`), `{${entries.join()}}`);
      const open = object.classes.find((one) => one.name === null && one.size === Infinity);
      if (open === undefined) continue;
      const present = new Set(plan.entries.map((entry) => entry.name));
      const value = solver.witness(open.goal, 10_000);
      for (const name of open.texts(limit + present.size)) {
        if (present.has(name)) continue;
        const text = `{${[...entries, `${JSON.stringify(name)}:${value}`].join()}}`;
        add(canonicalText(text), text);
      }
    }
    fuel.burn(values.size, 'uniqueItems');
    const list = [...values.values()].sort((a, b) => a.text.length - b.text.length).slice(0, limit);
    if (samples.size > 1_000) samples.clear();
    samples.set(key, list);
    return list;
  };

  /** Distinct unused values for items `from` to `to`: augmenting paths over positions and values. */
  const assign = (thread: UniqueProgress, from: number, used: readonly string[]): (Sample | null)[] | null => {
    const { array } = thread;
    const missing = array.min - from;
    const taken = new Map<string, number>();
    const chosen: (Sample | null)[] = [];
    const offered = new Map<number, Sample[]>();
    const offer = (index: number): Sample[] => {
      const goal = itemGoal(array, index);
      let list = offered.get(goal.id);
      if (list === undefined) {
        list = sample(goal, missing + used.length).filter((one) => !used.includes(one.canonical));
        offered.set(goal.id, list);
      }
      return list;
    };
    const place = (index: number, seen: Set<string>): boolean => {
      for (const one of offer(index)) {
        fuel.burn(1, 'uniqueItems');
        if (seen.has(one.canonical)) continue;
        seen.add(one.canonical);
        const holder = taken.get(one.canonical);
        if (holder !== undefined && !place(holder, seen)) continue;
        taken.set(one.canonical, index);
        chosen[index - from] = one;
        return true;
      }
      return false;
    };
    for (let index = from; index < array.min; index++) if (!place(index, new Set())) return null;
    return chosen;
  };

  return {
    pick: (goal, excluded) =>
      sample(goal, excluded.length + 1).find((one) => !excluded.includes(one.canonical))?.text ?? null,
    complete(thread) {
      const values = assign(thread, thread.numItems, thread.read!);
      return values?.map((one) => one!.text) ?? null;
    },
    watch(thread, goal) {
      const { array, numItems } = thread;
      const used = thread.read!;
      const excluded = [...used];
      if (numItems + 1 < array.min) {
        // A value that a later item needs must be left to it.
        const missing = array.min - numItems;
        const scarce = new Set<string>();
        for (let index = numItems + 1; index < array.min; index++) {
          const list = sample(itemGoal(array, index), missing + used.length);
          if (list.length < missing + used.length) for (const one of list) scarce.add(one.canonical);
          if (index > array.prefix.length) break;
        }
        for (const value of scarce) {
          if (!used.includes(value) && assign(thread, numItems + 1, [...used, value]) === null) excluded.push(value);
        }
        if (scarce.size === 0 && assign(thread, numItems + 1, used) === null) return null;
      }
      const left = sample(goal, excluded.length + 1).some((one) => !excluded.includes(one.canonical));
      return left ? { excluded } : null;
    },
  };

  function numberTexts(set: NumberSet, limit: number): string[] {
    const listed = listNumbers(set, 10_000, fuel);
    if (listed !== null) {
      return listed
        .slice(0, limit)
        .map((value) =>
          completeNumber({ ...set, min: { value, isOpen: false }, max: { value, isOpen: false } }, '', fuel)!,
        );
    }
    const texts: string[] = [];
    let rest = set;
    while (texts.length < limit) {
      const text = completeNumber(rest, '', fuel);
      if (text === null) break;
      texts.push(text);
      rest = { ...rest, excluded: [...rest.excluded, parseDecimal(text)] };
    }
    return texts;
  }
}

/** The spelling in which equal values are equal texts. */
export function canonicalText(text: string): string {
  const visit = (value: unknown): string => {
    if (typeof value === 'number') return canonicalDecimal(parseDecimal(String(value)));
    if (Array.isArray(value)) return `[${(value as unknown[]).map(visit).join()}]`;
    if (typeof value !== 'object' || value === null) return JSON.stringify(value);
    const entries = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}:${visit(inner)}`);
    return `{${entries.sort().join()}}`;
  };
  return visit(JSON.parse(text));
}

/** Computes which values a formula allows, whether there are any, and the shortest one. */
export interface Solver {
  /** Finds the costs of everything that `goal` needs; yields where it may be interrupted. */
  solve(goal: Formula): Generator<undefined, void>;
  /** Only satisfiable alternatives. */
  alternatives(goal: Formula): Alternatives;
  /** Bytes of the shortest value; Infinity if unsatisfiable. */
  cost: CostOf;
  /** The shortest value's text; null if longer than `maxBytes`. */
  witness(goal: Formula, maxBytes: number): string | null;
  writeArray(plan: ArrayPlan, isFirst: boolean, maxBytes: number): string | null;
  writeObject(plan: ObjectPlan, isFirst: boolean, maxBytes: number): string | null;
  textsOf(goal: Formula): Dfa;
  readonly unique: UniqueItems;
}
