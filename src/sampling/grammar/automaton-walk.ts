import type { ClassSet } from './byte-classes.ts';
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
  /** Sets the bits of all tokens that can be read from the state; the mask must be empty. */
  walk(trie: TokenTrie, numNodes: number, start: number, mask: Uint32Array): void;
}

/** The classes of bytes that lead back to a state. */
export interface Loops extends ClassSet {
  /** Those of them that do so as whole characters of a JSON string only. */
  readonly whole: ClassSet;
}

export interface LazyAutomatonOptions {
  /** The state after a byte, -1 if there is none. */
  step(state: number, byte: number): number;
  loops(state: number): Loops;
}

/** More than the deepest node of any vocabulary. */
const path = new Int32Array(1 << 16);

export function createLazyAutomaton({ step, loops }: LazyAutomatonOptions): LazyAutomaton {
  let numStates = 0;
  // Per state: its transitions, the classes it loops on (two words, and two with those as whole characters), and its visits.
  let rows = new Int32Array(8 * NUM_SYMBOLS);
  let loopWords = new Int32Array(8 * 4);
  let numVisits = new Int32Array(8);

  function grow(): void {
    const larger = (array: Int32Array): Int32Array<ArrayBuffer> => {
      const copy = new Int32Array(2 * array.length);
      copy.set(array);
      return copy;
    };
    [rows, loopWords, numVisits] = [larger(rows), larger(loopWords), larger(numVisits)];
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
    const { low, high, whole } = loops(state);
    loopWords.set([low, high, whole.low, whole.high], 4 * state);
  }

  return {
    get numStates() {
      return numStates;
    },
    add() {
      if (numStates === numVisits.length) grow();
      rows.fill(UNKNOWN, numStates * NUM_SYMBOLS, (numStates + 1) * NUM_SYMBOLS);
      return numStates++;
    },
    next,
    walk(trie, numNodes, start, mask) {
      const { bytes, depths, skip, first, own, sorted, contentBits, classesLow, classesHigh } = trie;
      path[0] = start;
      const allowed = collectRanges(sorted.length);
      // Local copies: growing replaces the arrays, and only a new transition can grow them.
      let [transitions, words] = [rows, loopWords];
      for (let node = 1; node < numNodes;) {
        const depth = depths[node]!;
        const before = path[depth - 1]!;
        const low = classesLow[node]!;
        const high = classesHigh[node]!;
        const content = contentBits[node]!;
        let isLoop = loopsOn(words, before, low, high, content, depth - 1);
        if (!isLoop) {
          let target = transitions[before * NUM_SYMBOLS + bytes[node]!]!;
          if (target === UNKNOWN) {
            target = next(before, bytes[node]!);
            [transitions, words] = [rows, loopWords];
          }
          if (target === DEAD) {
            node = skip[node]!;
            continue;
          }
          if (target === before && numVisits[before]! < HOT_VISITS) {
            countVisit(before);
            [transitions, words] = [rows, loopWords]; // looking for loops takes transitions
          }
          path[depth] = target;
          isLoop = target !== before && loopsOn(words, target, low, high, content, depth);
        }
        const from = first[node]!;
        if (isLoop) {
          node = skip[node]!;
          allowed.add(from, first[node]!);
        } else {
          allowed.add(from, own[node]!);
          node++;
        }
      }
      allowed.setBits(sorted, mask);
    },
  };
}

/** Whether a state loops on all these classes, those that it must read as whole characters being whole from a byte on. */
function loopsOn(words: Int32Array, state: number, low: number, high: number, content: number, from: number): boolean {
  const at = 4 * state;
  if ((low & ~words[at]!) !== 0 || (high & ~words[at + 1]!) !== 0) return false;
  if ((low & words[at + 2]!) === 0 && (high & words[at + 3]!) === 0) return true;
  return from < 32 && ((content >>> from) & 1) === 1;
}

/** Ranges in ascending order; the memory is that of the last call. */
function collectRanges(maxRanges: number) {
  if (ranges.length < 2 * maxRanges) ranges = new Int32Array(2 * maxRanges);
  const list = ranges;
  let [numRanges, numTokens] = [0, 0];
  return {
    add(from: number, to: number): void {
      if (to === from) return;
      numTokens += to - from;
      if (numRanges > 0 && list[2 * numRanges - 1] === from) list[2 * numRanges - 1] = to;
      else {
        list[2 * numRanges] = from;
        list[2 * numRanges + 1] = to;
        numRanges++;
      }
    },
    /** Sets the bits of the ids in the ranges. */
    setBits(ids: Int32Array, mask: Uint32Array): void {
      if (2 * numTokens <= ids.length) {
        for (let i = 0; i < numRanges; i++) allowTokens(ids, list[2 * i]!, list[2 * i + 1]!, mask);
        return;
      }
      // Most of them: those between the ranges are fewer.
      mask.set(allBits(ids, mask.length));
      let end = 0;
      for (let i = 0; i <= numRanges; i++) {
        const from = i === numRanges ? ids.length : list[2 * i]!;
        for (let at = end; at < from; at++) mask[ids[at]! >>> 5]! &= ~(1 << (ids[at]! & 31));
        end = list[2 * i + 1]!;
      }
    },
  };
}

let ranges = new Int32Array(0);
const allMasks = new WeakMap<Int32Array, Uint32Array>();

function allBits(ids: Int32Array, numWords: number): Uint32Array {
  let mask = allMasks.get(ids);
  if (mask === undefined) {
    mask = new Uint32Array(numWords);
    allowTokens(ids, 0, ids.length, mask);
    allMasks.set(ids, mask);
  }
  return mask;
}

/** Sets the bits of the tokens in a range of the sorted ones. */
export function allowTokens(sorted: Int32Array, from: number, to: number, mask: Uint32Array): void {
  for (let i = from; i < to; i++) {
    const id = sorted[i]!;
    mask[id >>> 5]! |= 1 << (id & 31);
  }
}
