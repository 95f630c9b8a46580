import type { Floats, NetworkLayout } from './layout.ts';

/** One U = A·B over the state, A by columns so that both halves read memory in order. */
export interface StateMatrix {
  load(params: Floats): void;
  /** out += A·(B·state); stores B·state at `innerAt`. */
  add(state: Float64Array, stateAt: number, inner: Float64Array, innerAt: number, out: Float64Array): void;
  /** Records the derivatives by the outputs at `from` and adds those by the state to `stateOwed`. */
  owe(pass: StatePass, owed: Float64Array, from: number, stateOwed: Float64Array): void;
  collect(gradient: Floats): void;
}

/** The arguments of `add`. */
export interface StatePass {
  readonly state: Float64Array;
  readonly stateAt: number;
  readonly inner: Float64Array;
  readonly innerAt: number;
}

export function createStateMatrix({ numHidden, rank }: NetworkLayout, aAt: number, bAt: number): StateMatrix {
  const size = numHidden * rank;
  const [a, b] = [new Float64Array(size), new Float64Array(size)];
  const [notedA, notedB] = [new Float64Array(size), new Float64Array(size)];
  return {
    load(params) {
      for (let i = 0; i < numHidden; i++)
        for (let r = 0; r < rank; r++) a[r * numHidden + i] = params[aAt + i * rank + r]!;
      for (let i = 0; i < size; i++) b[i] = params[bAt + i]!;
    },
    add(state, stateAt, inner, innerAt, out) {
      for (let r = 0; r < rank; r++) {
        let sum = 0;
        for (let j = 0, at = r * numHidden; j < numHidden; j++, at++) sum += b[at]! * state[stateAt + j]!;
        inner[innerAt + r] = sum;
        for (let i = 0, at = r * numHidden; i < numHidden; i++, at++) out[i]! += a[at]! * sum;
      }
    },
    owe({ state, stateAt, inner, innerAt }, owed, from, stateOwed) {
      for (let r = 0; r < rank; r++) {
        const innerValue = inner[innerAt + r]!;
        let sum = 0;
        for (let i = 0, at = r * numHidden; i < numHidden; i++, at++) {
          const derivative = owed[from + i]!;
          notedA[at]! += derivative * innerValue;
          sum += derivative * a[at]!;
        }
        for (let j = 0, at = r * numHidden; j < numHidden; j++, at++) {
          notedB[at]! += sum * state[stateAt + j]!;
          stateOwed[j]! += sum * b[at]!;
        }
      }
    },
    collect(gradient) {
      for (let i = 0; i < numHidden; i++)
        for (let r = 0; r < rank; r++) gradient[aAt + i * rank + r]! += notedA[r * numHidden + i]!;
      for (let i = 0; i < size; i++) gradient[bAt + i]! += notedB[i]!;
      notedA.fill(0);
      notedB.fill(0);
    },
  };
}
