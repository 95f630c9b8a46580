import type { Fuel } from '../limits.ts';
import type { Dfa } from './automaton.ts';

/** Bytes needed to write a character. */
export type CodeCost = (code: number) => number;

export const utf8Cost: CodeCost = (code) => (code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);

/** Inside a JSON string: quotes, backslashes and five control characters have short escapes, other controls `\u00XX`. */
export const jsonCost: CodeCost = (code) => {
  if (code === 34 || code === 92 || (code >= 8 && code <= 13 && code !== 11)) return 2;
  return code < 32 ? 6 : utf8Cost(code);
};

// The cheapest character of a range is one of these or its ends; readable ones first.
const CHEAP = [97, 65, 48, 32, 33, 35, 93, 8, 9, 10, 12, 13, 14, 0x80, 0x800, 0xe000, 0x10000];

export function cheapestCode(lo: number, hi: number, cost: CodeCost): number {
  let best = -1;
  for (const code of [...CHEAP, lo, hi]) {
    if (code >= lo && code <= hi && (best < 0 || cost(code) < cost(best))) best = code;
  }
  return best;
}

/** Per state: bytes of the shortest path to acceptance, and its first character (-1: accepting). */
export interface Distances {
  readonly bytes: Float64Array;
  readonly codes: Int32Array;
}

export function measureDistances(
  dfa: Dfa,
  cost: CodeCost,
  fuel: Fuel,
  isGoal = (label: number) => label !== 0,
): Distances {
  const bytes = new Float64Array(dfa.numStates).fill(Infinity);
  const codes = new Int32Array(dfa.numStates).fill(-1);
  for (let q = 0; q < dfa.numStates; q++) if (isGoal(dfa.labels[q]!)) bytes[q] = 0;
  for (let isChanged = true; isChanged;) {
    isChanged = false;
    // Backwards, because states are numbered from the start: most automata settle in two rounds.
    for (let q = dfa.numStates - 1; q >= 0; q--) {
      for (let e = dfa.offsets[q]!; e < dfa.offsets[q + 1]!; e++) {
        fuel.burn(1, 'an automaton');
        const after = bytes[dfa.to[e]!]!;
        if (after + 1 >= bytes[q]!) continue;
        const code = cheapestCode(dfa.lo[e]!, dfa.hi[e]!, cost);
        if (after + cost(code) >= bytes[q]!) continue;
        bytes[q] = after + cost(code);
        codes[q] = code;
        isChanged = true;
      }
    }
  }
  return { bytes, codes };
}

export function shortestText(distances: Distances, from: number, step: (q: number, code: number) => number): string {
  let text = '';
  for (let q = from; distances.codes[q]! >= 0; q = step(q, distances.codes[q]!)) {
    text += String.fromCodePoint(distances.codes[q]!);
  }
  return text;
}

/** Per state: the number of texts that lead to acceptance; Infinity if a loop does. */
export function countTexts(dfa: Dfa, fuel: Fuel, isGoal = (label: number) => label !== 0): Float64Array {
  const counts = new Float64Array(dfa.numStates).fill(-1);
  const useful = new Uint8Array(dfa.numStates);
  for (let isChanged = true; isChanged;) {
    isChanged = false;
    fuel.burn(dfa.numStates + dfa.lo.length, 'an automaton');
    for (let q = dfa.numStates - 1; q >= 0; q--) {
      if (useful[q] === 1) continue;
      let is = isGoal(dfa.labels[q]!);
      for (let e = dfa.offsets[q]!; !is && e < dfa.offsets[q + 1]!; e++) is = useful[dfa.to[e]!] === 1;
      if (is) {
        useful[q] = 1;
        isChanged = true;
      }
    }
  }
  // Kahn's algorithm over useful states: remaining states lie on a loop or lead into one.
  const open = new Int32Array(dfa.numStates);
  const sources: number[][] = Array.from({ length: dfa.numStates }, () => []);
  const ready: number[] = [];
  for (let q = 0; q < dfa.numStates; q++) {
    if (useful[q] === 0) {
      counts[q] = 0;
      continue;
    }
    for (let e = dfa.offsets[q]!; e < dfa.offsets[q + 1]!; e++) {
      if (useful[dfa.to[e]!] === 0) continue;
      open[q]!++;
      sources[dfa.to[e]!]!.push(q);
    }
    if (open[q] === 0) ready.push(q);
  }
  for (let q = ready.pop(); q !== undefined; q = ready.pop()) {
    let count = isGoal(dfa.labels[q]!) ? 1 : 0;
    for (let e = dfa.offsets[q]!; e < dfa.offsets[q + 1]!; e++) {
      if (useful[dfa.to[e]!] === 1) count += (dfa.hi[e]! - dfa.lo[e]! + 1) * counts[dfa.to[e]!]!;
    }
    counts[q] = count;
    for (const source of sources[q]!) if (--open[source]! === 0) ready.push(source);
  }
  return counts.map((count) => (count < 0 ? Infinity : count));
}

/** Texts with a requested label, cheapest first; stops after `limit`. */
export function listTexts(
  dfa: Dfa,
  limit: number,
  fuel: Fuel,
  isGoal = (label: number) => label !== 0,
  from = 0,
): string[] {
  const texts: string[] = [];
  const { bytes } = measureDistances(dfa, jsonCost, fuel, isGoal);
  // One queue per total cost (written and remaining), so texts come out in order of cost.
  const queues: [q: number, text: string, isWhole: boolean, written: number][][] = [];
  const push = (q: number, text: string, isWhole: boolean, written: number): void => {
    fuel.burn(1, 'a list of texts');
    const total = isWhole ? written : written + bytes[q]!;
    if (total < Infinity) (queues[total] ??= []).push([q, text, isWhole, written]);
  };
  if (dfa.numStates > 0) push(from, '', false, 0);
  for (let cost = 0; cost < queues.length && texts.length < limit; cost++) {
    for (const [q, text, isWhole, written] of queues[cost] ?? []) {
      if (texts.length >= limit) break;
      if (isWhole) {
        texts.push(text);
        continue;
      }
      if (isGoal(dfa.labels[q]!)) push(q, text, true, written);
      for (let e = dfa.offsets[q]!; e < dfa.offsets[q + 1]!; e++) {
        if (bytes[dfa.to[e]!] === Infinity) continue;
        const best = cheapestCode(dfa.lo[e]!, dfa.hi[e]!, jsonCost);
        const lo = dfa.hi[e]! - dfa.lo[e]! > limit ? best : dfa.lo[e]!;
        for (let code = lo; code <= Math.min(dfa.hi[e]!, lo + limit); code++) {
          push(dfa.to[e]!, text + String.fromCodePoint(code), false, written + jsonCost(code));
        }
      }
    }
  }
  return texts;
}
