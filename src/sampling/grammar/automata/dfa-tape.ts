import type { Dfa } from './automaton.ts';

/**
 * A compilation's automata in build order. Compiling the same source again requests the same ones in the same order, so
 * a thread that must not stall reads what another has built.
 */
export interface DfaTape {
  /** The next automaton; `mark` identifies it in both compilations. */
  next(mark: number, build: () => Dfa): Dfa;
}

/** Builds everything. */
export const NO_TAPE: DfaTape = { next: (_, build) => build() };

// Recorded numbers: 16 MiB. Automata that do not fit are rebuilt, and their steps counted.
const MAX_NUMBERS = 1 << 22;
const HEAD = 3;

const sizeOf = (numStates: number, numEdges: number): number => HEAD + 3 * numStates + 1 + 3 * numEdges;

/** Builds and records everything; `onBuilt` is called after each automaton, `stop` returns the recording. */
export function createRecorder(onBuilt: (build: () => Dfa) => Dfa): DfaTape & { stop(): Int32Array } {
  const kept: [mark: number, dfa: Dfa][] = [];
  let numNumbers = 0;
  let isInside = false;
  let isFull = false;
  return {
    next(mark, build) {
      // Part of a larger automaton, which is recorded as a whole.
      if (isInside || isFull) return build();
      isInside = true;
      try {
        const dfa = onBuilt(build);
        numNumbers += sizeOf(dfa.numStates, dfa.lo.length);
        isFull = numNumbers > MAX_NUMBERS;
        if (!isFull) kept.push([mark, dfa]);
        return dfa;
      } finally {
        isInside = false;
      }
    },
    stop() {
      const size = kept.reduce((sum, [, dfa]) => sum + sizeOf(dfa.numStates, dfa.lo.length), 0);
      // Shared memory: it passes through two threads without a copy.
      const tape = new Int32Array(new SharedArrayBuffer(4 * size));
      let at = 0;
      const write = (numbers: ArrayLike<number>): void => {
        tape.set(numbers, at);
        at += numbers.length;
      };
      for (const [mark, { numStates, offsets, lo, hi, to, labels, free }] of kept) {
        write([mark, numStates, lo.length]);
        for (const numbers of [offsets, lo, hi, to, labels, free]) write(numbers);
      }
      return tape;
    },
  };
}

/** Reads a recording; from the first mismatch on it builds. `create` assigns an automaton's id. */
export function createPlayer(tape: Int32Array, create: (dfa: Omit<Dfa, 'id'>) => Dfa): DfaTape {
  let at = 0;
  return {
    next(mark, build) {
      const [kept, numStates, numEdges] = tape.subarray(at, at + HEAD);
      if (kept !== mark) {
        at = tape.length;
        return build();
      }
      at += HEAD;
      const read = (length: number): Int32Array => tape.slice(at, (at += length));
      const offsets = read(numStates! + 1);
      const [lo, hi, to] = [read(numEdges!), read(numEdges!), read(numEdges!)];
      const [labels, free] = [read(numStates!), Uint8Array.from(read(numStates!))];
      return create({ numStates: numStates!, offsets, lo, hi, to, labels, free });
    },
  };
}
