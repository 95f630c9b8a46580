import type { Fuel } from '../limits.ts';
import { unsupported } from '../limits.ts';
import { ANY, MAX_CODE_POINT } from './code-ranges.ts';
import type { Dfa } from './automaton.ts';

/** A state under construction: its label and its transitions as sorted lo, hi, target triples. */
export interface DraftState {
  label: number;
  edges: number[];
}

let lastId = 0;

/** Assigns a new id to an automaton. */
export function nameDfa(dfa: Omit<Dfa, 'id'>): Dfa {
  return { id: ++lastId, ...dfa };
}

/** The state after `code`, or -1. */
export function dfaStep(dfa: Dfa, state: number, code: number): number {
  let low = dfa.offsets[state]!;
  let high = dfa.offsets[state + 1]! - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (code < dfa.lo[middle]!) high = middle - 1;
    else if (code > dfa.hi[middle]!) low = middle + 1;
    else return dfa.to[middle]!;
  }
  return -1;
}

/** Whether any character in [lo, hi] has a transition. */
export function hasEdgeInto(dfa: Dfa, state: number, lo: number, hi: number): boolean {
  for (let edge = dfa.offsets[state]!; edge < dfa.offsets[state + 1]!; edge++) {
    if (dfa.lo[edge]! <= hi && dfa.hi[edge]! >= lo) return true;
  }
  return false;
}

/** Whether all characters in [lo, hi] lead back to the state. */
export function loopsOn(dfa: Dfa, state: number, lo: number, hi: number): boolean {
  let at = lo;
  for (let e = dfa.offsets[state]!; e < dfa.offsets[state + 1]! && at <= hi; e++) {
    if (dfa.hi[e]! < at) continue;
    if (dfa.lo[e]! > at || dfa.to[e] !== state) return false;
    at = dfa.hi[e]! + 1;
  }
  return at > hi;
}

export function dfaLabel(dfa: Dfa, text: string): number {
  if (dfa.numStates === 0) return 0;
  let state = 0;
  for (const character of text) {
    state = dfaStep(dfa, state, character.codePointAt(0)!);
    if (state < 0) return 0;
  }
  return dfa.labels[state]!;
}

function reachesAccepting(states: readonly DraftState[]): Uint8Array {
  const sources: number[][] = states.map(() => []);
  const alive = new Uint8Array(states.length);
  const queue: number[] = [];
  states.forEach(({ label, edges }, state) => {
    for (let i = 2; i < edges.length; i += 3) sources[edges[i]!]!.push(state);
    if (label !== 0) {
      alive[state] = 1;
      queue.push(state);
    }
  });
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const source of sources[next]!) {
      if (alive[source] === 1) continue;
      alive[source] = 1;
      queue.push(source);
    }
  }
  return alive;
}

/** Splits states by label, then by transitions, until nothing changes. */
function equivalenceClasses(states: readonly DraftState[], alive: Uint8Array, fuel: Fuel): Int32Array {
  let classes = Int32Array.from(states, (state, i) => (alive[i] === 1 ? state.label : -1));
  for (let count = 0; ;) {
    const ids = new Map<string, number>();
    const next = new Int32Array(states.length).fill(-1);
    states.forEach(({ edges }, state) => {
      if (alive[state] !== 1) return;
      fuel.burn(2 + edges.length, 'an automaton');
      let key = `${classes[state]}`;
      for (let i = 0; i < edges.length; i += 3) {
        const target = classes[edges[i + 2]!]!;
        if (target < 0) continue;
        let last = i;
        while (edges[last + 3] === edges[last + 1]! + 1 && classes[edges[last + 5]!] === target) last += 3;
        key += `;${edges[i]}-${edges[last + 1]}>${target}`;
        i = last;
      }
      let id = ids.get(key);
      if (id === undefined) ids.set(key, (id = ids.size));
      next[state] = id;
    });
    classes = next;
    if (ids.size === count) return classes;
    count = ids.size;
  }
}

/** Trims, minimizes and freezes a draft whose state 0 is the start. */
export function finishDfa(states: readonly DraftState[], fuel: Fuel): Dfa {
  const alive = states.length === 0 ? new Uint8Array(0) : reachesAccepting(states);
  const classes = equivalenceClasses(states, alive, fuel);
  const order: number[] = [];
  const numbers = new Map<number, number>();
  const visit = (state: number): number => {
    let number = numbers.get(classes[state]!);
    if (number === undefined) {
      numbers.set(classes[state]!, (number = order.length));
      order.push(state);
    }
    return number;
  };
  if (alive[0] === 1) visit(0);
  const offsets: number[] = [0];
  const lo: number[] = [];
  const hi: number[] = [];
  const to: number[] = [];
  for (let i = 0; i < order.length; i++) {
    const { edges } = states[order[i]!]!;
    const first = lo.length;
    for (let e = 0; e < edges.length; e += 3) {
      if (alive[edges[e + 2]!] !== 1) continue;
      const target = visit(edges[e + 2]!);
      const last = lo.length - 1;
      if (last >= first && to[last] === target && hi[last]! + 1 === edges[e]) hi[last] = edges[e + 1]!;
      else {
        lo.push(edges[e]!);
        hi.push(edges[e + 1]!);
        to.push(target);
      }
    }
    offsets.push(lo.length);
  }
  // Twice: distances and counts are stored per state too.
  fuel.hold(8 * (3 * lo.length + 3 * order.length));
  const labels = Int32Array.from(order, (state) => states[state]!.label);
  const free = labels.map((label, q) => {
    const [from, end] = [offsets[q]!, offsets[q + 1]!];
    if (label === 0 || end - from !== 2 || to[from] !== q || to[from + 1] !== q) return 0;
    return lo[from] === 0 && hi[from] === ANY[1] && lo[from + 1] === ANY[2] && hi[from + 1] === MAX_CODE_POINT ? 1 : 0;
  });
  return nameDfa({
    numStates: order.length,
    offsets: Int32Array.from(offsets),
    lo: Int32Array.from(lo),
    hi: Int32Array.from(hi),
    to: Int32Array.from(to),
    labels,
    free: Uint8Array.from(free),
  });
}

/** Product of several automata; `label` maps their labels (0 where one is stuck) to the product's. */
export function productDfa(parts: readonly Dfa[], label: (labels: readonly number[]) => number, fuel: Fuel): Dfa {
  const states: DraftState[] = [];
  const tuples: number[][] = [];
  const ids = new Map<string, number>();
  const visit = (tuple: number[]): number => {
    const key = tuple.join();
    let id = ids.get(key);
    if (id === undefined) {
      ids.set(key, (id = states.length));
      tuples.push(tuple);
      states.push({ label: label(tuple.map((q, i) => (q < 0 ? 0 : parts[i]!.labels[q]!))), edges: [] });
      if (states.length > fuel.limits.maxStates) {
        throw unsupported('automaton', null, `more than ${fuel.limits.maxStates} states`);
      }
    }
    return id;
  };
  visit(parts.map((part) => (part.numStates === 0 ? -1 : 0)));
  for (let i = 0; i < states.length; i++) {
    const tuple = tuples[i]!;
    const cuts = new Set([ANY[0]!, ANY[2]!]);
    tuple.forEach((q, p) => {
      const part = parts[p]!;
      if (q < 0) return;
      for (let e = part.offsets[q]!; e < part.offsets[q + 1]!; e++) cuts.add(part.lo[e]!).add(part.hi[e]! + 1);
    });
    const starts = [...cuts].sort((a, b) => a - b);
    fuel.burn(4 * starts.length * (1 + parts.length), 'a product of automata');
    starts.forEach((lo, s) => {
      const next = starts[s + 1] ?? MAX_CODE_POINT + 1;
      if (lo > MAX_CODE_POINT || (lo >= ANY[1]! + 1 && lo < ANY[2]!)) return;
      states[i]!.edges.push(lo, next - 1 === ANY[2]! - 1 ? ANY[1]! : next - 1);
      states[i]!.edges.push(visit(tuple.map((q, p) => (q < 0 ? -1 : dfaStep(parts[p]!, q, lo)))));
    });
  }
  return finishDfa(states, fuel);
}

/** Accepts the listed texts, each with its label. */
export function dfaOfTexts(texts: readonly (readonly [string, number])[], fuel: Fuel): Dfa {
  return fuel.tape.next(texts.length, () => buildDfaOfTexts(texts, fuel));
}

function buildDfaOfTexts(texts: readonly (readonly [string, number])[], fuel: Fuel): Dfa {
  const nodes: { label: number; next: Map<number, number> }[] = [{ label: 0, next: new Map() }];
  for (const [text, label] of texts) {
    let at = 0;
    for (const character of text) {
      fuel.burn(1, 'a list of texts');
      const code = character.codePointAt(0)!;
      let next = nodes[at]!.next.get(code);
      if (next === undefined) {
        nodes[at]!.next.set(code, (next = nodes.length));
        nodes.push({ label: 0, next: new Map() });
      }
      at = next;
    }
    nodes[at]!.label = label;
  }
  const states = nodes.map(({ label, next }) => ({
    label,
    edges: [...next].sort((a, b) => a[0] - b[0]).flatMap(([code, target]) => [code, code, target]),
  }));
  return finishDfa(states, fuel);
}

export function dfaOfAny(fuel: Fuel): Dfa {
  return finishDfa([{ label: 1, edges: [ANY[0]!, ANY[1]!, 0, ANY[2]!, ANY[3]!, 0] }], fuel);
}

export function complementDfa(dfa: Dfa, fuel: Fuel): Dfa {
  return productDfa([dfa], ([label]) => (label === 0 ? 1 : 0), fuel);
}

/** Accepts any text of minimum to maximum characters; maximum may be Infinity. */
export function dfaOfLengths(minimum: number, maximum: number, fuel: Fuel): Dfa {
  const last = Number.isFinite(maximum) ? maximum : minimum;
  if (last >= fuel.limits.maxStates) {
    throw unsupported('maxLength', null, `a length of ${last} with a pattern exceeds ${fuel.limits.maxStates} states`);
  }
  const states: DraftState[] = [];
  for (let n = 0; n <= last; n++) {
    const target = n < last ? n + 1 : Number.isFinite(maximum) ? -1 : n;
    const edges = target < 0 ? [] : [ANY[0]!, ANY[1]!, target, ANY[2]!, ANY[3]!, target];
    states.push({ label: n >= minimum ? 1 : 0, edges });
  }
  return finishDfa(states, fuel);
}
