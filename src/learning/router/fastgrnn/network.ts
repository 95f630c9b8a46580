import type { Floats, NetworkLayout } from './layout.ts';
import type { Mask } from './sparsity.ts';

/** The entries of both W by row and column; without a mask all of them. */
export interface Entries {
  readonly rows: Int32Array;
  readonly cols: Int32Array;
  /** Positions in W. */
  readonly at: Int32Array;
}

function entriesOf(layout: NetworkLayout, kept: Int32Array | null): Entries {
  const { numInputs, numHidden } = layout;
  const at = kept ?? Int32Array.from({ length: numHidden * numInputs }, (_, i) => i);
  return { at, rows: at.map((i) => Math.floor(i / numInputs)), cols: at.map((i) => i % numInputs) };
}

/** What a forward pass leaves behind for the way back, one row per segment. */
export interface Tape {
  numSteps: number;
  /** f64[maxSteps × numInputs]: normalized input, before gain and bias. */
  normalized: Float64Array;
  /** f64[maxSteps × numInputs]: after them. */
  scaled: Float64Array;
  /** f64[maxSteps × numHidden] */
  gate: Float64Array;
  candidate: Float64Array;
  /** f64[(maxSteps + 1) × numHidden]: row 0 is the empty state. */
  state: Float64Array;
  /** f64[maxSteps × rank]: B·h. */
  inner: Float64Array;
  innerH: Float64Array;
  /** f64[numOutputs] */
  readonly outputs: Float64Array;
}

export interface Network {
  readonly layout: NetworkLayout;
  readonly tape: Tape;
  /** Fills the tape and returns its outputs, which the next call overwrites. */
  forward(params: Floats, segments: readonly ArrayLike<number>[]): Float64Array;
  /** Adds to `gradient` what the last forward pass owes to the loss, given its derivative by each output. */
  backward(params: Floats, outputGradient: Float64Array, gradient: Floats): void;
}

/** Keeps the deviation of a constant input from dividing by zero. */
export const NORM_EPSILON = 1e-5;
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

function makeTape(layout: NetworkLayout, maxSteps: number): Tape {
  const { numInputs, numHidden, rank, numOutputs } = layout;
  return {
    numSteps: 0,
    normalized: new Float64Array(maxSteps * numInputs),
    scaled: new Float64Array(maxSteps * numInputs),
    gate: new Float64Array(maxSteps * numHidden),
    candidate: new Float64Array(maxSteps * numHidden),
    state: new Float64Array((maxSteps + 1) * numHidden),
    inner: new Float64Array(maxSteps * rank),
    innerH: new Float64Array(maxSteps * rank),
    outputs: new Float64Array(numOutputs),
  };
}

function normalize(input: ArrayLike<number>, out: Float64Array, at: number): void {
  const size = input.length;
  let sum = 0;
  for (let i = 0; i < size; i++) sum += input[i]!;
  const mean = sum / size;
  let squared = 0;
  for (let i = 0; i < size; i++) squared += (input[i]! - mean) ** 2;
  const scale = 1 / Math.sqrt(squared / size + NORM_EPSILON);
  for (let i = 0; i < size; i++) out[at + i] = (input[i]! - mean) * scale;
}

/** Scratch of one thread for one shape; the parameters come with each call. Without a mask it goes over rows, not a list of entries. */
export function createNetwork(layout: NetworkLayout, mask: Mask | null = null): Network {
  const { numInputs, numHidden, rank, numOutputs } = layout;
  const wz = entriesOf(layout, mask?.wz ?? null);
  const wh = entriesOf(layout, mask?.wh ?? null);
  let maxSteps = 8;
  let tape = makeTape(layout, maxSteps);
  const sumZ = new Float64Array(numHidden);
  const sumH = new Float64Array(numHidden);
  const stateGradient = new Float64Array(numHidden);
  const previousGradient = new Float64Array(numHidden);
  const inputGradient = new Float64Array(numInputs);
  const innerGradient = new Float64Array(rank);

  const addMatrix = (params: Floats, at: number, entries: Entries, input: number, sums: Float64Array): void => {
    const { rows, cols, at: positions } = entries;
    const { scaled } = tape;
    if (mask === null) {
      for (let i = 0; i < numHidden; i++) {
        const row = at + i * numInputs;
        let sum = 0;
        for (let j = 0; j < numInputs; j++) sum += params[row + j]! * scaled[input + j]!;
        sums[i]! += sum;
      }
      return;
    }
    for (let k = 0; k < rows.length; k++) sums[rows[k]!]! += params[at + positions[k]!]! * scaled[input + cols[k]!]!;
  };
  /** sums += A·(B·h), B·h kept at `inner`. */
  const addLowRank = (
    params: Floats,
    a: number,
    b: number,
    state: number,
    inner: Float64Array,
    innerAt: number,
    sums: Float64Array,
  ): void => {
    // prettier-ignore
    for (let r = 0; r < rank; r++) {
      let sum = 0;
      for (let j = 0; j < numHidden; j++) sum += params[b + r * numHidden + j]! * tape.state[state + j]!;
      inner[innerAt + r] = sum;
    }
    for (let i = 0; i < numHidden; i++)
      for (let r = 0; r < rank; r++) sums[i]! += params[a + i * rank + r]! * inner[innerAt + r]!;
  };
  const backLowRank = (
    params: Floats,
    a: number,
    b: number,
    state: number,
    inner: Float64Array,
    innerAt: number,
    sums: Float64Array,
    gradient: Floats,
  ): void => {
    // prettier-ignore
    innerGradient.fill(0);
    for (let i = 0; i < numHidden; i++) {
      for (let r = 0; r < rank; r++) {
        gradient[a + i * rank + r]! += sums[i]! * inner[innerAt + r]!;
        innerGradient[r]! += sums[i]! * params[a + i * rank + r]!;
      }
    }
    for (let r = 0; r < rank; r++) {
      const owed = innerGradient[r]!;
      for (let j = 0; j < numHidden; j++) {
        gradient[b + r * numHidden + j]! += owed * tape.state[state + j]!;
        previousGradient[j]! += owed * params[b + r * numHidden + j]!;
      }
    }
  };
  const backMatrix = (
    params: Floats,
    at: number,
    entries: Entries,
    input: number,
    sums: Float64Array,
    gradient: Floats,
  ): void => {
    // prettier-ignore
    const { scaled } = tape;
    if (mask === null) {
      for (let i = 0; i < numHidden; i++) {
        const row = at + i * numInputs;
        const owed = sums[i]!;
        for (let j = 0; j < numInputs; j++) {
          gradient[row + j]! += owed * scaled[input + j]!;
          inputGradient[j]! += owed * params[row + j]!;
        }
      }
      return;
    }
    const { rows, cols, at: positions } = entries;
    for (let k = 0; k < rows.length; k++) {
      const owed = sums[rows[k]!]!;
      gradient[at + positions[k]!]! += owed * scaled[input + cols[k]!]!;
      inputGradient[cols[k]!]! += owed * params[at + positions[k]!]!;
    }
  };

  return {
    layout,
    get tape() {
      return tape;
    },
    forward(params, segments) {
      if (segments.length > maxSteps) {
        maxSteps = segments.length;
        tape = makeTape(layout, maxSteps);
      }
      tape.numSteps = segments.length;
      const zeta = params[layout.zeta]!;
      const nu = params[layout.nu]!;
      for (let t = 0; t < segments.length; t++) {
        const input = t * numInputs;
        const state = t * numHidden;
        normalize(segments[t]!, tape.normalized, input);
        for (let i = 0; i < numInputs; i++)
          tape.scaled[input + i] = params[layout.normGain + i]! * tape.normalized[input + i]! + params[layout.normBias + i]!; // prettier-ignore
        for (let i = 0; i < numHidden; i++) {
          sumZ[i] = params[layout.biasZ + i]!;
          sumH[i] = params[layout.biasH + i]!;
        }
        addMatrix(params, layout.wz, wz, input, sumZ);
        addMatrix(params, layout.wh, wh, input, sumH);
        addLowRank(params, layout.az, layout.bz, state, tape.inner, t * rank, sumZ);
        addLowRank(params, layout.ah, layout.bh, state, tape.innerH, t * rank, sumH);
        for (let i = 0; i < numHidden; i++) {
          const z = sigmoid(sumZ[i]!);
          const c = Math.tanh(sumH[i]!);
          tape.gate[state + i] = z;
          tape.candidate[state + i] = c;
          tape.state[state + numHidden + i] = (zeta * (1 - z) + nu) * c + z * tape.state[state + i]!;
        }
      }
      const last = segments.length * numHidden;
      for (let o = 0; o < numOutputs; o++) {
        let sum = params[layout.headBias + o]!;
        const row = layout.heads + o * numHidden;
        for (let i = 0; i < numHidden; i++) sum += params[row + i]! * tape.state[last + i]!;
        tape.outputs[o] = sum;
      }
      return tape.outputs;
    },
    backward(params, outputGradient, gradient) {
      const zeta = params[layout.zeta]!;
      const nu = params[layout.nu]!;
      const last = tape.numSteps * numHidden;
      stateGradient.fill(0);
      for (let o = 0; o < numOutputs; o++) {
        const owed = outputGradient[o]!;
        if (owed === 0) continue;
        const row = layout.heads + o * numHidden;
        gradient[layout.headBias + o]! += owed;
        for (let i = 0; i < numHidden; i++) {
          gradient[row + i]! += owed * tape.state[last + i]!;
          stateGradient[i]! += owed * params[row + i]!;
        }
      }
      for (let t = tape.numSteps - 1; t >= 0; t--) {
        const input = t * numInputs;
        const state = t * numHidden;
        for (let i = 0; i < numHidden; i++) {
          const owed = stateGradient[i]!;
          const z = tape.gate[state + i]!;
          const c = tape.candidate[state + i]!;
          gradient[layout.zeta]! += owed * (1 - z) * c;
          gradient[layout.nu]! += owed * c;
          sumZ[i] = owed * (tape.state[state + i]! - zeta * c) * z * (1 - z);
          sumH[i] = owed * (zeta * (1 - z) + nu) * (1 - c * c);
          previousGradient[i] = owed * z;
          gradient[layout.biasZ + i]! += sumZ[i]!;
          gradient[layout.biasH + i]! += sumH[i]!;
        }
        inputGradient.fill(0);
        backMatrix(params, layout.wz, wz, input, sumZ, gradient);
        backMatrix(params, layout.wh, wh, input, sumH, gradient);
        backLowRank(params, layout.az, layout.bz, state, tape.inner, t * rank, sumZ, gradient);
        backLowRank(params, layout.ah, layout.bh, state, tape.innerH, t * rank, sumH, gradient);
        for (let i = 0; i < numInputs; i++) {
          gradient[layout.normGain + i]! += inputGradient[i]! * tape.normalized[input + i]!;
          gradient[layout.normBias + i]! += inputGradient[i]!;
        }
        stateGradient.set(previousGradient);
      }
    },
  };
}
