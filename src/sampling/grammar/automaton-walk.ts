import { BACKSLASH_CLASS, NON_ASCII_CLASS, type ClassSet } from './byte-classes.ts';
import type { TokenTrie } from './token-trie.ts';

const UNKNOWN = -2;
const DEAD = -1;
/** Bytes and the two marks of control tokens. */
const NUM_SYMBOLS = 258;
/** Visits after which the loops of a state are looked for: that takes more than a hundred steps. */
const HOT_VISITS = 32;

const NO_LOOPS: ClassSet = { low: 0, high: 0 };

/** Numbered states whose transitions are computed once. */
export interface LazyAutomaton {
  readonly numStates: number;
  /** Adds a state. */
  add(): number;
  next(state: number, byte: number): number;
  /** Sets the bits of all tokens that can be read from the state. */
  walk(trie: TokenTrie, numNodes: number, start: number, mask: Uint32Array): void;
}

export interface LazyAutomatonOptions {
  /** The state after a byte, -1 if there is none. */
  step(state: number, byte: number): number;
  /** The classes of bytes that lead back to the state. */
  loops(state: number): ClassSet;
  /** Whether multi-byte characters and escapes are read as in JSON strings: loops hold for whole characters only. */
  readonly isJson: boolean;
}

export function createLazyAutomaton({ step, loops, isJson }: LazyAutomatonOptions): LazyAutomaton {
  const rows: Int32Array[] = [];
  const numVisits: number[] = [];
  const loopSets: ClassSet[] = [];

  function next(state: number, byte: number): number {
    const row = rows[state]!;
    let target = row[byte]!;
    if (target === UNKNOWN) row[byte] = target = step(state, byte);
    return target;
  }

  return {
    get numStates() {
      return rows.length;
    },
    add() {
      numVisits.push(0);
      loopSets.push(NO_LOOPS);
      return rows.push(new Int32Array(NUM_SYMBOLS).fill(UNKNOWN)) - 1;
    },
    next,
    walk(trie, numNodes, start, mask) {
      const { bytes, depths, skip, first, own, sorted, contentBits, classesLow, classesHigh } = trie;
      const path = [start];
      for (let node = 1; node < numNodes;) {
        const depth = depths[node]!;
        const before = path[depth - 1]!;
        const { low, high } = loopSets[before]!;
        if ((classesLow[node]! & ~low) === 0 && (classesHigh[node]! & ~high) === 0) {
          if (!isJson || isWhole(classesLow[node]!, classesHigh[node]!, contentBits[node]!, depth)) {
            const end = first[skip[node]!]!;
            for (let i = first[node]!; i < end; i++) {
              const id = sorted[i]!;
              mask[id >>> 5]! |= 1 << (id & 31);
            }
            node = skip[node]!;
            continue;
          }
        }
        const target = next(before, bytes[node]!);
        if (target === DEAD) {
          node = skip[node]!;
          continue;
        }
        if (target === before && ++numVisits[before]! === HOT_VISITS) loopSets[before] = loops(before);
        for (let i = first[node]!; i < own[node]!; i++) {
          const id = sorted[i]!;
          mask[id >>> 5]! |= 1 << (id & 31);
        }
        path[depth] = target;
        node++;
      }
    },
  };
}

const isIn = (low: number, high: number, number: number): boolean =>
  number < 32 ? ((low >>> number) & 1) === 1 : ((high >>> (number - 32)) & 1) === 1;

/** Whether the bytes from the node on are whole characters of a JSON string, except the last. */
function isWhole(low: number, high: number, contentBits: number, depth: number): boolean {
  if (!isIn(low, high, NON_ASCII_CLASS) && !isIn(low, high, BACKSLASH_CLASS)) return true;
  return depth <= 32 && ((contentBits >>> (depth - 1)) & 1) === 1;
}
