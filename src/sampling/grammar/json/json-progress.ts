import type { Dfa } from '../automata/automaton.ts';
import { ANY, MAX_CODE_POINT } from '../automata/code-ranges.ts';
import { dfaLabel } from '../automata/dfa.ts';
import { countTexts } from '../automata/dfa-measures.ts';
import { internDfa } from '../automata/intern-dfa.ts';
import type { Fuel } from '../limits.ts';
import { parseDecimal } from '../numbers/decimal.ts';
import type { NumberSet } from '../numbers/number-set.ts';
import type { Alternatives, KeyClass, ObjectAlternative, TextAlternative } from '../schema/alternatives.ts';
import type { Formula, Formulas } from '../schema/formula-types.ts';
import type { ArrayPlan, ObjectPlan } from '../schema/plans.ts';
import { countItem, itemChoices, planArray, planObject, propertyGoal } from '../schema/plans.ts';
import type { Solver } from '../schema/unique-items.ts';
import type { StringContent } from '../string-content.ts';
import type { CharacterState } from './string-lexer.ts';
import { possibleCodes } from './string-lexer.ts';
import type { ArrayThread, KeyThread, ObjectThread, StartThread, TextThread, Watch } from './threads.ts';
import { GAP } from './layout.ts';
import { characterKey, idOf } from './threads.ts';
import type { UniqueItems } from '../schema/unique-items.ts';

/** Queries of threads to the schema: which continuations are allowed and can be completed. */
export interface JsonProgress {
  readonly fuel: Fuel;
  readonly unique: UniqueItems;
  alternatives(goal: Formula): Alternatives;
  isTextAlive(thread: TextThread): boolean;
  watchedNumbers(set: NumberSet, watch: Watch | null): NumberSet;
  isKeyAlive(thread: KeyThread): boolean;
  /** Whether every text can start, or go on as, the name of another property. */
  isAnyName(thread: ObjectThread): boolean;
  /** The content of a property name; null if names already present matter. */
  keyContent(thread: KeyThread): StringContent | null;
  canAddKey(thread: ObjectThread): boolean;
  /** The continuations for a property of this name; empty if it is not allowed. */
  valuesOfKey(thread: ObjectThread, label: number, name: string): StartThread[];
  isObjectDone(thread: ObjectThread): boolean;
  canonicalObject(thread: ObjectThread): string;
  valuesOfItem(thread: ArrayThread): StartThread[];
  isArrayDone(thread: ArrayThread): boolean;
  canonicalArray(thread: ArrayThread): string;
  planObject(thread: ObjectThread): ObjectPlan | null;
  planArray(thread: ArrayThread): ArrayPlan | null;
}

/** Automata of names at one time; each state takes a kilobyte. */
const MAX_OWNERS = 64;
// A plan and its entries, mostly few.
const PLAN_BYTES = 400;

/** Exactly one text: the end of a string with all its characters. */
const ONE = Float64Array.of(1);

/** Number of texts from a state, after part of the next character was read; `counts` is per state. */
function countLeft(dfa: Dfa, state: number, character: CharacterState, counts: Float64Array): number {
  if (character.mode === 0) return counts[state]!;
  const codes = possibleCodes(character);
  let left = 0;
  for (let e = dfa.offsets[state]!; e < dfa.offsets[state + 1]!; e++) {
    for (let i = 0; i < codes.length; i += 2) {
      const size = Math.min(dfa.hi[e]!, codes[i + 1]!) - Math.max(dfa.lo[e]!, codes[i]!) + 1;
      if (size > 0 && counts[dfa.to[e]!]! > 0) left += size * counts[dfa.to[e]!]!;
    }
  }
  return left;
}

/** Whether the text starts with what was read, including an unfinished character. */
function goesOn(text: string, read: string, character: CharacterState): boolean {
  if (!text.startsWith(read)) return false;
  if (character.mode === 0) return true;
  const next = text.codePointAt(read.length);
  const codes = possibleCodes(character);
  return next !== undefined && codes.some((lo, i) => i % 2 === 0 && lo <= next && next <= codes[i + 1]!);
}

function isAccepted(text: TextAlternative, value: string): boolean {
  const { length } = [...value];
  return dfaLabel(text.dfa, value) !== 0 && length >= text.min && length <= text.max;
}

/** Whether one more property never keeps the object from being completed. */
const isUnlimited = ({ object: { max, somes } }: ObjectThread): boolean => max === Infinity && somes.length === 0;

interface ValueChoice {
  /** The `somes` that the value satisfies. */
  readonly bits: number;
  readonly goal: Formula;
}

const completeness = new WeakMap<Dfa, boolean>();

/** Whether every character continues every text. */
function isComplete(dfa: Dfa): boolean {
  let is = completeness.get(dfa);
  if (is === undefined) {
    is = true;
    for (let q = 0; q < dfa.numStates && is; q++) {
      let next = 0;
      for (let e = dfa.offsets[q]!; e < dfa.offsets[q + 1]!; e++) {
        is &&= dfa.lo[e] === next;
        next = dfa.hi[e] === ANY[1] ? ANY[2]! : dfa.hi[e]! + 1;
      }
      is &&= next > MAX_CODE_POINT;
    }
    completeness.set(dfa, is);
  }
  return is;
}

export function createJsonProgress(formulas: Formulas, solver: Solver): JsonProgress {
  const { unique } = solver;
  const classCounts = new WeakMap<ObjectAlternative, Map<number, Float64Array>>();
  const objectPlans = new WeakMap<ObjectAlternative, Map<string, ObjectPlan | null>>();
  const addable = new WeakMap<ObjectThread, Map<number, boolean>>();
  const choices = new WeakMap<ObjectThread, Map<number, readonly ValueChoice[]>>();
  const anyNames = new WeakMap<ObjectThread, boolean>();
  const watched = new WeakMap<Watch, Map<NumberSet, NumberSet>>();

  const owners = new Map<string, object>();
  const ownerOf = (place: string): object => {
    let owner = owners.get(place);
    if (owner === undefined) {
      if (owners.size >= MAX_OWNERS) owners.clear();
      owners.set(place, (owner = {}));
    }
    return owner;
  };
  const countsOf = (object: ObjectAlternative, label: number): Float64Array => {
    let counts = classCounts.get(object);
    if (counts === undefined) classCounts.set(object, (counts = new Map()));
    let found = counts.get(label);
    if (found === undefined)
      counts.set(label, (found = countTexts(object.names, formulas.fuel, (one) => one === label)));
    return found;
  };

  const progressKey = ({ numKeys, labels, someBits, others }: ObjectThread): string =>
    `${numKeys};${labels.join()};${someBits};${others.length === 0 ? '' : JSON.stringify(others)}`;

  /** Plans are cached by progress; most objects only ask for their remaining required names. */
  const planOf = (thread: ObjectThread): ObjectPlan | null => {
    let plans = objectPlans.get(thread.object);
    if (plans === undefined) objectPlans.set(thread.object, (plans = new Map()));
    const key = progressKey(thread);
    let plan = plans.get(key);
    if (plan === undefined) {
      plan = planObject(formulas, thread.object, thread, solver.cost);
      if (plans.size > 10_000) plans.clear();
      plans.set(key, plan);
      formulas.fuel.hold(PLAN_BYTES + 2 * key.length);
    }
    return plan;
  };

  const withKey = (thread: ObjectThread, one: KeyClass, name: string, bits: number): ObjectThread => ({
    ...thread,
    phase: 'after-value',
    gap: GAP.none,
    numKeys:
      thread.object.max < Infinity ? thread.numKeys + 1 : Math.min(thread.numKeys + 1, Math.max(1, thread.object.min)),
    labels: one.name === null ? thread.labels : [...thread.labels, one.label].sort((a, b) => a - b),
    others: one.name === null ? [...thread.others, { label: one.label, name }] : thread.others,
    someBits: thread.someBits | bits,
    read: thread.read === null ? null : [...thread.read, name],
  });

  const usableBits = (thread: ObjectThread, one: KeyClass): number[] => {
    const open = one.someBits & ~thread.someBits;
    const list: number[] = [];
    for (let bits = open; ; bits = (bits - 1) & open) {
      list.push(bits);
      if (bits === 0) return list;
    }
  };

  /** The goals that the value of a property may have; the name matters only where names can run out. */
  const choicesOf = (thread: ObjectThread, one: KeyClass, name: string): readonly ValueChoice[] => {
    let known = choices.get(thread);
    if (known === undefined) choices.set(thread, (known = new Map()));
    const isShared = one.name !== null || one.size === Infinity;
    let list = isShared ? known.get(one.label) : undefined;
    if (list === undefined) {
      list = usableBits(thread, one)
        .map((bits) => ({ bits, goal: propertyGoal(formulas, thread.object, one, bits) }))
        .filter(({ bits, goal }) => solver.cost(goal) < Infinity && planOf(withKey(thread, one, name, bits)) !== null);
      if (isShared) known.set(one.label, list);
    }
    return list;
  };
  const isAddable = (thread: ObjectThread, label: number): boolean => {
    let known = addable.get(thread);
    if (known === undefined) addable.set(thread, (known = new Map()));
    let is = known.get(label);
    if (is === undefined) {
      const one = thread.object.classes[label - 1]!;
      const present = thread.others.filter((other) => other.label === label).length;
      const isFree = one.name === null ? present < one.size : !thread.labels.includes(label);
      is =
        isFree &&
        thread.numKeys < thread.object.max &&
        usableBits(thread, one).some(
          (bits) =>
            solver.cost(propertyGoal(formulas, thread.object, one, bits)) < Infinity &&
            // Which name it is does not matter, but it takes one of its class away.
            (isUnlimited(thread) || planOf(withKey(thread, one, one.name ?? freeName(thread, one), bits)) !== null),
        );
      known.set(label, is);
    }
    return is;
  };
  const freeName = (thread: ObjectThread, one: KeyClass): string => {
    const present = new Set(thread.others.map((other) => other.name));
    return one.texts(present.size + 1).find((text) => !present.has(text)) ?? '';
  };

  const isLabelReachable = (thread: KeyThread, label: number): boolean => {
    const { object, state, character, read } = thread;
    const { names, classes } = object.object;
    if (!isAddable(object, label)) return false;
    if (character.mode === 0 && (classes[label - 1]!.name !== null || object.others.length === 0)) return true;
    const left = countLeft(names, state, character, countsOf(object.object, label));
    if (left === Infinity || left === 0) return left > 0;
    const present = object.others.filter((other) => other.label === label).map((other) => other.name);
    return left > present.filter((name) => goesOn(name, read, character)).length;
  };

  return {
    fuel: formulas.fuel,
    unique,
    alternatives: solver.alternatives,
    isTextAlive({ text, state, length, watch, read, character }) {
      if (length > text.max) return false;
      if (watch === null || watch.excluded.length === 0) return true;
      const isCounted = text.min > 0 || text.max < Infinity;
      const isLast = length + (character.mode === 0 ? 0 : 1) >= text.max;
      const left =
        isCounted && !isLast ? Infinity : countLeft(text.dfa, state, character, isCounted ? ONE : text.counts);
      if (left === Infinity) return true;
      const texts = watch.excluded
        .filter((canonical) => canonical.startsWith('"'))
        .map((one) => JSON.parse(one) as string);
      const blocked = texts.filter((value) => goesOn(value, read, character) && isAccepted(text, value));
      return left > blocked.length;
    },
    watchedNumbers(set, watch) {
      if (watch === null || watch.excluded.length === 0) return set;
      let sets = watched.get(watch);
      if (sets === undefined) watched.set(watch, (sets = new Map()));
      let made = sets.get(set);
      if (made === undefined) {
        const numbers = watch.excluded.filter((canonical) => /^[-\d]/.test(canonical)).map(parseDecimal);
        sets.set(set, (made = { ...set, excluded: [...set.excluded, ...numbers] }));
      }
      return made;
    },
    isKeyAlive(thread) {
      const { reachable } = thread.object.object;
      return reachable.length > 0 && reachable[thread.state]!.some((label) => isLabelReachable(thread, label));
    },
    isAnyName(thread) {
      let is = anyNames.get(thread);
      if (is === undefined) {
        const { names, classes } = thread.object;
        const isEndless = ({ name, label }: KeyClass): boolean =>
          name === null &&
          countsOf(thread.object, label).every((count) => count === Infinity) &&
          isAddable(thread, label);
        anyNames.set(thread, (is = isComplete(names) && classes.some(isEndless)));
      }
      return is;
    },
    keyContent({ object, state, character }) {
      const { classes } = object.object;
      // Names of a class that always has more cannot run out.
      const hasEnough = ({ name, label }: KeyClass): boolean =>
        name !== null || countsOf(object.object, label).every((count) => count === 0 || count === Infinity);
      if (object.others.length > 0 && !classes.every(hasEnough)) return null;
      const isAlive = (to: number, unfinished: CharacterState): boolean =>
        this.isKeyAlive({ kind: 'key', object, state: to, character: unfinished, read: '' });
      // Where no property keeps others out, only the ones still missing count, in whichever grammar.
      const names = isUnlimited(object) ? internDfa(object.object.names) : object.object.names;
      const place = isUnlimited(object)
        ? `K${names.id},${classes.filter(({ label }) => isAddable(object, label)).map(({ label }) => label).join()}` // prettier-ignore
        : `K${idOf(object.object)},${progressKey(object)}`;
      const key = `${place},${state},${characterKey(character)}`;
      return { dfa: names, state, character, isAlive, owner: ownerOf(place), key };
    },
    canAddKey: (thread) => thread.object.classes.some((one) => isAddable(thread, one.label)),
    valuesOfKey(thread, label, name) {
      if (label === 0 || !isAddable(thread, label)) return [];
      const one = thread.object.classes[label - 1]!;
      if (one.name === null && thread.others.some((other) => other.name === name)) return [];
      return choicesOf(thread, one, name).map(({ bits, goal }) => {
        const up = withKey(thread, one, name, bits);
        const watch = thread.read === null ? null : { excluded: [] };
        return { kind: 'start', goal, gap: GAP.space, depth: thread.depth, up, watch };
      });
    },
    isObjectDone: (thread) => planOf(thread)?.entries.length === 0,
    canonicalObject(thread) {
      if (thread.read === null) return '';
      const entries: string[] = [];
      for (let i = 0; i < thread.read.length; i += 2)
        entries.push(`${JSON.stringify(thread.read[i])}:${thread.read[i + 1]}`);
      return `{${entries.sort().join()}}`;
    },
    valuesOfItem(thread) {
      const { array, numItems, depth } = thread;
      if (numItems >= array.max) return [];
      const starts: StartThread[] = [];
      for (const { bits, goal } of itemChoices(formulas, array, numItems)) {
        const counts = countItem(array, thread.counts, bits);
        if (counts === null || solver.cost(goal) === Infinity) continue;
        const known = array.max < Infinity ? Infinity : Math.max(array.prefix.length, array.min, 1);
        const up: ArrayThread = { ...thread, numItems: Math.min(numItems + 1, known), counts };
        const watch =
          thread.read === null ? null : array.unique === null ? { excluded: [] } : unique.watch(thread, goal);
        if (thread.read !== null && watch === null) continue;
        if (array.unique !== null || planArray(formulas, array, up, solver.cost) !== null) {
          starts.push({ kind: 'start', goal, gap: GAP.none, depth, up, watch });
        }
      }
      return starts;
    },
    isArrayDone: ({ array, numItems, counts }) =>
      numItems >= array.min && counts.every((count, i) => count >= array.contains[i]!.min),
    canonicalArray: (thread) => (thread.read === null ? '' : `[${thread.read.join()}]`),
    planObject: planOf,
    planArray: (thread) => planArray(formulas, thread.array, thread, solver.cost),
  };
}
