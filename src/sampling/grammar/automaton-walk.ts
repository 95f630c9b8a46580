import { BACKSLASH_CLASS, type ClassSet, NON_ASCII_CLASS } from './byte-classes.ts';
import type { TokenTrie } from './token-trie.ts';

const UNKNOWN = -2;
const DEAD = -1;
/** Bytes and the two marks of control tokens. */
const NUM_SYMBOLS = 258;
/** Visits after which the loops of a state are looked for: that takes more than a hundred steps. */
const HOT_VISITS = 32;

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

/** More than the deepest node of any vocabulary. */
const path = new Int32Array(1 << 16);

export function createLazyAutomaton({ step, loops, isJson }: LazyAutomatonOptions): LazyAutomaton {
  let numStates = 0;
  // Per state: its transitions, the classes it loops on as two words, and its visits.
  let rows = new Int32Array(8 * NUM_SYMBOLS);
  let loopsLow = new Int32Array(8);
  let loopsHigh = new Int32Array(8);
  let numVisits = new Int32Array(8);

  function grow(): void {
    const larger = (array: Int32Array): Int32Array<ArrayBuffer> => {
      const copy = new Int32Array(2 * array.length);
      copy.set(array);
      return copy;
    };
    [rows, loopsLow, loopsHigh, numVisits] = [larger(rows), larger(loopsLow), larger(loopsHigh), larger(numVisits)];
  }
  function next(state: number, byte: number): number {
    let target = rows[state * NUM_SYMBOLS + byte]!;
    if (target === UNKNOWN) {
      target = step(state, byte);
      rows[state * NUM_SYMBOLS + byte] = target; // after the step, which may have moved the rows
    }
    return target;
  }
  function countVisit(state: number): void {
    numVisits[state]!++;
    if (numVisits[state] !== HOT_VISITS) return;
    const { low, high } = loops(state);
    [loopsLow[state], loopsHigh[state]] = [low, high];
  }

  return {
    get numStates() {
      return numStates;
    },
    add() {
      if (numStates === loopsLow.length) grow();
      rows.fill(UNKNOWN, numStates * NUM_SYMBOLS, (numStates + 1) * NUM_SYMBOLS);
      return numStates++;
    },
    next,
    walk(trie, numNodes, start, mask) {
      const { bytes, depths, skip, first, own, sorted, contentBits, classesLow, classesHigh } = trie;
      path[0] = start;
      // Local copies: growing replaces the arrays, and only a new transition can grow them.
      let [transitions, lows, highs] = [rows, loopsLow, loopsHigh];
      for (let node = 1; node < numNodes;) {
        const depth = depths[node]!;
        const before = path[depth - 1]!;
        if ((classesLow[node]! & ~lows[before]!) === 0 && (classesHigh[node]! & ~highs[before]!) === 0) {
          if (!isJson || isWhole(classesLow[node]!, classesHigh[node]!, contentBits[node]!, depth)) {
            const end = skip[node]!;
            allowTokens(sorted, first[node]!, first[end]!, mask);
            node = end;
            continue;
          }
        }
        let target = transitions[before * NUM_SYMBOLS + bytes[node]!]!;
        if (target === UNKNOWN) {
          target = next(before, bytes[node]!);
          [transitions, lows, highs] = [rows, loopsLow, loopsHigh];
        }
        if (target === DEAD) {
          node = skip[node]!;
          continue;
        }
        if (target === before && numVisits[before]! < HOT_VISITS) {
          countVisit(before);
          [transitions, lows, highs] = [rows, loopsLow, loopsHigh]; // looking for loops takes transitions
        }
        const from = first[node]!;
        if (own[node]! > from) allowTokens(sorted, from, own[node]!, mask);
        path[depth] = target;
        node++;
      }
    },
  };
}

/** Sets the bits of the tokens in a range of the sorted ones. */
export function allowTokens(sorted: Int32Array, from: number, to: number, mask: Uint32Array): void {
  for (let i = from; i < to; i++) {
    const id = sorted[i]!;
    mask[id >>> 5]! |= 1 << (id & 31);
  }
}

const isIn = (low: number, high: number, number: number): boolean =>
  number < 32 ? ((low >>> number) & 1) === 1 : ((high >>> (number - 32)) & 1) === 1;

/** Whether the bytes from the node on are whole characters of a JSON string, except the last. */
function isWhole(low: number, high: number, contentBits: number, depth: number): boolean {
  if (!isIn(low, high, NON_ASCII_CLASS) && !isIn(low, high, BACKSLASH_CLASS)) return true;
  return depth <= 32 && ((contentBits >>> (depth - 1)) & 1) === 1;
}
