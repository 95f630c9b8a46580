import type { ArrayAlternative, KeyClass, ObjectAlternative } from './alternatives.ts';
import { jsonTextBytes } from './json-text.ts';
import type { Formula, Formulas } from './formula-types.ts';

/** Bytes of the shortest value that satisfies a formula; Infinity if there is none. */
export type CostOf = (goal: Formula) => number;

/** The cheapest completion of an array or object: the remaining entries in order, and the bytes including the bracket. */
export interface ArrayPlan {
  readonly bytes: number;
  readonly items: readonly { readonly goal: Formula; readonly times: number }[];
}
export interface ObjectPlan {
  readonly bytes: number;
  readonly entries: readonly { readonly name: string; readonly goal: Formula }[];
}

/** An array so far: its items, and how many satisfied each `contains`. */
export interface ArrayProgress {
  readonly numItems: number;
  readonly counts: readonly number[];
}

export interface ObjectProgress {
  readonly numKeys: number;
  /** Labels of the listed names present. */
  readonly labels: readonly number[];
  /** The other names present. */
  readonly others: readonly { readonly label: number; readonly name: string }[];
  /** The satisfied `somes`, as bits. */
  readonly someBits: number;
}

export function itemGoal(alternative: ArrayAlternative, index: number): Formula {
  return alternative.prefix[index] ?? alternative.rest;
}

/** The ways an item can count: which `contains` it satisfies (bits) and the resulting goal. */
export function itemChoices(
  formulas: Formulas,
  alternative: ArrayAlternative,
  index: number,
): { bits: number; goal: Formula }[] {
  const base = itemGoal(alternative, index);
  let choices = [{ bits: 0, goal: base }];
  alternative.contains.forEach(({ from, goal }, i) => {
    if (index < from) return;
    choices = choices.flatMap((choice) => [
      { bits: choice.bits | (1 << i), goal: formulas.and([choice.goal, goal]) },
      { bits: choice.bits, goal: formulas.and([choice.goal, formulas.not(goal)]) },
    ]);
  });
  return choices;
}

export function countItem(
  alternative: ArrayAlternative,
  counts: readonly number[],
  bits: number,
): readonly number[] | null {
  const next = counts.map((count, i) => count + ((bits >> i) & 1));
  for (const [i, count] of next.entries()) if (count > alternative.contains[i]!.max) return null;
  // Counts beyond the largest bound are equivalent, which keeps states few.
  return next.map((count, i) =>
    Math.min(count, Math.max(alternative.contains[i]!.min, finite(alternative.contains[i]!.max))),
  );
}

const finite = (max: number): number => (max === Infinity ? 0 : max);

export function planArray(
  formulas: Formulas,
  alternative: ArrayAlternative,
  progress: ArrayProgress,
  costOf: CostOf,
): ArrayPlan | null {
  if (progress.numItems > alternative.max) return null;
  return alternative.contains.length === 0
    ? planPlainArray(alternative, progress.numItems, costOf)
    : planCountedArray(formulas, alternative, progress, costOf);
}

function planPlainArray(alternative: ArrayAlternative, from: number, costOf: CostOf): ArrayPlan | null {
  const items: { goal: Formula; times: number }[] = [];
  let bytes = 1;
  let at = from;
  for (; at < Math.min(alternative.min, alternative.prefix.length); at++) {
    items.push({ goal: alternative.prefix[at]!, times: 1 });
    bytes += costOf(alternative.prefix[at]!) + (at > 0 ? 1 : 0);
  }
  const times = alternative.min - at;
  if (times > 0) {
    items.push({ goal: alternative.rest, times });
    bytes += times * (costOf(alternative.rest) + 1) - (at === 0 ? 1 : 0);
  }
  return bytes < Infinity ? { bytes, items } : null;
}

function planCountedArray(
  formulas: Formulas,
  alternative: ArrayAlternative,
  progress: ArrayProgress,
  costOf: CostOf,
): ArrayPlan | null {
  const { contains, min, max, prefix } = alternative;
  const settled = Math.max(min, prefix.length);
  interface Step {
    readonly bytes: number;
    readonly goal: Formula | null;
    readonly next: Step | null;
  }
  const known = new Map<string, Step>();
  const best = (index: number, counts: readonly number[]): Step => {
    const key = `${index};${counts.join()}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    formulas.fuel.burn(4, 'contains');
    const isDone = index >= min && counts.every((count, i) => count >= contains[i]!.min);
    let result: Step = { bytes: isDone ? 1 : Infinity, goal: null, next: null };
    if (!isDone && index < max) {
      for (const { bits, goal } of itemChoices(formulas, alternative, index)) {
        const isUseful = index < settled || contains.some((one, i) => ((bits >> i) & 1) === 1 && counts[i]! < one.min);
        const own = isUseful ? costOf(goal) + (index > 0 ? 1 : 0) : Infinity;
        if (own >= result.bytes) continue;
        const after = countItem(alternative, counts, bits);
        if (after === null) continue;
        const next = best(index + 1, after);
        if (own + next.bytes < result.bytes) result = { bytes: own + next.bytes, goal, next };
      }
    }
    known.set(key, result);
    return result;
  };
  const start = best(progress.numItems, progress.counts);
  if (start.bytes === Infinity) return null;
  const items: { goal: Formula; times: number }[] = [];
  for (let step: Step = start; step.next !== null; step = step.next) items.push({ goal: step.goal!, times: 1 });
  return { bytes: start.bytes, items };
}

/** The goal of a property of the class that must also satisfy the `somes` of `bits`. */
export function propertyGoal(formulas: Formulas, alternative: ObjectAlternative, one: KeyClass, bits: number): Formula {
  return formulas.and([one.goal, ...alternative.somes.filter((_, i) => ((bits >> i) & 1) === 1)]);
}

export function planObject(
  formulas: Formulas,
  alternative: ObjectAlternative,
  progress: ObjectProgress,
  costOf: CostOf,
): ObjectPlan | null {
  const { classes, somes, min, max } = alternative;
  const used = new Set(progress.labels);
  const required = classes.filter((one) => one.isRequired && !used.has(one.label));
  const open = somes.map((_, i) => i).filter((i) => ((progress.someBits >> i) & 1) === 0);
  let best: ObjectPlan | null = null;

  const finish = (chosen: readonly { one: KeyClass; bits: number }[]): void => {
    const taken = new Map<number, number>();
    const entries: { name: string; goal: Formula; bytes: number }[] = [];
    const add = (one: KeyClass, bits: number): boolean => {
      const name = nameOf(one, progress, taken.get(one.label) ?? 0);
      if (name === null) return false;
      taken.set(one.label, (taken.get(one.label) ?? 0) + 1);
      const goal = propertyGoal(formulas, alternative, one, bits);
      entries.push({ name, goal, bytes: jsonTextBytes(name) + 3 + costOf(goal) });
      return true;
    };
    for (const { one, bits } of chosen) if (!add(one, bits)) return;
    for (let missing = min - progress.numKeys - entries.length; missing > 0; missing--) {
      const options = classes
        .filter(
          (one) =>
            costOf(one.goal) < Infinity && (one.name === null || (!used.has(one.label) && !taken.has(one.label))),
        )
        .map((one) => ({ one, name: nameOf(one, progress, taken.get(one.label) ?? 0) }))
        .filter((option) => option.name !== null)
        .map(({ one, name }) => ({ one, bytes: jsonTextBytes(name!) + costOf(one.goal) }));
      options.sort((a, b) => a.bytes - b.bytes);
      formulas.fuel.burn(classes.length, 'minProperties');
      if (options.length === 0 || !add(options[0]!.one, 0)) return;
    }
    if (progress.numKeys + entries.length > max) return;
    const commas = entries.length - (progress.numKeys === 0 && entries.length > 0 ? 1 : 0);
    const bytes = 1 + commas + entries.reduce((sum, entry) => sum + entry.bytes, 0);
    if (bytes < Infinity && (best === null || bytes < best.bytes)) best = { bytes, entries };
  };
  const assign = (at: number, chosen: readonly { one: KeyClass; bits: number }[]): void => {
    formulas.fuel.burn(1 + chosen.length, 'combining the schema');
    if (at === open.length) return finish(chosen);
    const bit = 1 << open[at]!;
    chosen.forEach(({ one, bits }, i) => {
      if ((one.someBits & bit) !== 0)
        assign(
          at + 1,
          chosen.map((other, j) => (i === j ? { one, bits: bits | bit } : other)),
        );
    });
    for (const one of classes) {
      const isFree = one.name === null || (!used.has(one.label) && !chosen.some((other) => other.one === one));
      if ((one.someBits & bit) !== 0 && isFree) assign(at + 1, [...chosen, { one, bits: bit }]);
    }
  };
  assign(
    0,
    required.map((one) => ({ one, bits: 0 })),
  );
  return best;
}

/** The cheapest name of the class that is neither in the object nor among the first `taken`. */
function nameOf(one: KeyClass, progress: ObjectProgress, taken: number): string | null {
  if (one.name !== null) return taken === 0 ? one.name : null;
  const present = progress.others.filter((other) => other.label === one.label).map((other) => other.name);
  if (one.size <= present.length + taken) return null;
  const free = one.texts(present.length + taken + 1).filter((text) => !present.includes(text));
  return free[taken] ?? null;
}

export const EMPTY_OBJECT = { numKeys: 0, labels: [], others: [], someBits: 0 };
