import type { Dfa } from './automaton.ts';

// The same patterns occur in many schemas; each entry may hold a megabyte.
const MAX_INTERNED = 128;

const interned = new Map<number, Dfa>(); // least recently used first
const firsts = new WeakMap<Dfa, Dfa>();

function hashOf({ numStates, offsets, lo, hi, to, labels }: Dfa): number {
  let hash = numStates;
  for (const numbers of [offsets, lo, hi, to, labels]) {
    for (const value of numbers) hash = Math.imul(hash ^ value, 0x01000193) ^ (hash >>> 15);
  }
  return hash >>> 0;
}

function isEqual(a: Dfa, b: Dfa): boolean {
  const isSame = (left: Int32Array, right: Int32Array): boolean =>
    left.length === right.length && left.every((value, i) => value === right[i]);
  return (['offsets', 'lo', 'hi', 'to', 'labels'] as const).every((part) => isSame(a[part], b[part]));
}

/** The first automaton with the same states, or this one, so that equal automata share their cached masks. */
export function internDfa(dfa: Dfa): Dfa {
  let first = firsts.get(dfa);
  if (first === undefined) {
    const hash = hashOf(dfa);
    const other = interned.get(hash);
    first = other !== undefined && isEqual(other, dfa) ? other : dfa;
    firsts.set(dfa, first);
    interned.delete(hash);
    interned.set(hash, first);
    if (interned.size > MAX_INTERNED) interned.delete(interned.keys().next().value!);
  }
  return first;
}
