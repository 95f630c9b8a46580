import { createInputMatrix, strideOf } from './input-matrix.ts';
import { emptyRow, type InputRow, readRow } from './input-row.ts';
import type { Floats, NetworkLayout } from './layout.ts';
import type { Mask } from './sparsity.ts';
import { createStateMatrix } from './state-matrix.ts';

export interface Network {
  readonly layout: NetworkLayout;
  /** Sets the parameters for all passes until the next call. */
  load(params: Floats): void;
  /** Returns the outputs; the next call overwrites them. */
  forward(segments: readonly ArrayLike<number>[]): Float64Array;
  /** Records the derivatives of the last forward pass, from the derivative by each output. */
  backward(outputGradient: Float64Array): void;
  /** Adds the derivatives of all passes since the last call to `gradient`. */
  collect(gradient: Floats): void;
}

/** Values of a forward pass that the backward pass needs. */
interface Tape {
  readonly maxSteps: number;
  readonly rows: InputRow[];
  /** f64[maxSteps × numHidden] */
  readonly gate: Float64Array;
  readonly candidate: Float64Array;
  /** f64[(maxSteps + 1) × numHidden]: row 0 is the empty state. */
  readonly state: Float64Array;
  /** f64[maxSteps × rank]: B·h. */
  readonly innerZ: Float64Array;
  readonly innerH: Float64Array;
  /** f64[maxSteps × stride]: derivatives by the sums of gate and candidate. */
  readonly owedZ: Float64Array;
  readonly owedH: Float64Array;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

function makeTape(layout: NetworkLayout, maxSteps: number): Tape {
  const { numHidden, rank } = layout;
  const floats = (width: number, numRows = maxSteps): Float64Array => new Float64Array(numRows * width);
  return {
    maxSteps,
    rows: Array.from({ length: maxSteps }, emptyRow),
    gate: floats(numHidden),
    candidate: floats(numHidden),
    state: floats(numHidden, maxSteps + 1),
    innerZ: floats(rank),
    innerH: floats(rank),
    owedZ: floats(strideOf(layout)),
    owedH: floats(strideOf(layout)),
  };
}

/** Scratch memory of one thread for one shape. Gradients are summed in f64 over all passes of a batch. */
export function createNetwork(layout: NetworkLayout, mask: Mask | null = null): Network {
  const { numHidden, rank, numOutputs } = layout;
  const stride = strideOf(layout);
  const wz = createInputMatrix(layout, layout.wz, layout.biasZ, mask?.wz ?? null);
  const wh = createInputMatrix(layout, layout.wh, layout.biasH, mask?.wh ?? null);
  const uz = createStateMatrix(layout, layout.az, layout.bz);
  const uh = createStateMatrix(layout, layout.ah, layout.bh);
  const parts = [wz, wh, uz, uh];
  const [sumZ, sumH] = [new Float64Array(stride), new Float64Array(stride)];
  const [stateOwed, previousOwed] = [new Float64Array(numHidden), new Float64Array(numHidden)];
  const heads = new Float64Array(numOutputs * numHidden);
  const notedHeads = new Float64Array(heads.length);
  const headBias = new Float64Array(numOutputs);
  const notedBias = new Float64Array(numOutputs);
  const outputs = new Float64Array(numOutputs);
  let [zeta, nu, notedZeta, notedNu] = [0, 0, 0, 0];
  let [tape, numSteps] = [makeTape(layout, 8), 0];

  return {
    layout,
    load(params) {
      for (const part of parts) part.load(params);
      for (let i = 0; i < heads.length; i++) heads[i] = params[layout.heads + i]!;
      for (let i = 0; i < numOutputs; i++) headBias[i] = params[layout.headBias + i]!;
      zeta = params[layout.zeta]!;
      nu = params[layout.nu]!;
    },
    forward(segments) {
      numSteps = segments.length;
      if (numSteps > tape.maxSteps) tape = makeTape(layout, numSteps);
      const { rows, gate, candidate, state, innerZ, innerH } = tape;
      for (let t = 0; t < numSteps; t++) {
        const at = t * numHidden;
        readRow(segments[t]!, rows[t]!);
        wz.apply(rows[t]!, sumZ);
        wh.apply(rows[t]!, sumH);
        // Before the first segment the state is empty, so U contributes nothing.
        if (t > 0) {
          uz.add(state, at, innerZ, t * rank, sumZ);
          uh.add(state, at, innerH, t * rank, sumH);
        }
        for (let i = 0; i < numHidden; i++) {
          const z = sigmoid(sumZ[i]!);
          const c = Math.tanh(sumH[i]!);
          gate[at + i] = z;
          candidate[at + i] = c;
          state[at + numHidden + i] = (zeta * (1 - z) + nu) * c + z * state[at + i]!;
        }
      }
      for (let o = 0, row = 0; o < numOutputs; o++, row += numHidden) {
        let sum = headBias[o]!;
        for (let i = 0; i < numHidden; i++) sum += heads[row + i]! * state[numSteps * numHidden + i]!;
        outputs[o] = sum;
      }
      return outputs;
    },
    backward(outputGradient) {
      const { rows, gate, candidate, state, innerZ, innerH, owedZ, owedH } = tape;
      stateOwed.fill(0);
      for (let o = 0, row = 0; o < numOutputs; o++, row += numHidden) {
        const owed = outputGradient[o]!;
        if (owed === 0) continue;
        notedBias[o]! += owed;
        for (let i = 0; i < numHidden; i++) {
          notedHeads[row + i]! += owed * state[numSteps * numHidden + i]!;
          stateOwed[i]! += owed * heads[row + i]!;
        }
      }
      for (let t = numSteps - 1; t >= 0; t--) {
        const at = t * numHidden;
        const from = t * stride;
        for (let i = 0; i < numHidden; i++) {
          const owed = stateOwed[i]!;
          const z = gate[at + i]!;
          const c = candidate[at + i]!;
          notedZeta += owed * (1 - z) * c;
          notedNu += owed * c;
          owedZ[from + i] = owed * (state[at + i]! - zeta * c) * z * (1 - z);
          owedH[from + i] = owed * (zeta * (1 - z) + nu) * (1 - c * c);
          previousOwed[i] = owed * z;
        }
        if (t === 0) break;
        uz.owe({ state, stateAt: at, inner: innerZ, innerAt: t * rank }, owedZ, from, previousOwed);
        uh.owe({ state, stateAt: at, inner: innerH, innerAt: t * rank }, owedH, from, previousOwed);
        stateOwed.set(previousOwed);
      }
      wz.owe(rows, numSteps, owedZ);
      wh.owe(rows, numSteps, owedH);
    },
    collect(gradient) {
      for (const part of parts) part.collect(gradient);
      for (let i = 0; i < heads.length; i++) gradient[layout.heads + i]! += notedHeads[i]!;
      for (let i = 0; i < numOutputs; i++) gradient[layout.headBias + i]! += notedBias[i]!;
      gradient[layout.zeta]! += notedZeta;
      gradient[layout.nu]! += notedNu;
      notedHeads.fill(0);
      notedBias.fill(0);
      notedZeta = notedNu = 0;
    },
  };
}
