import type { InputRow } from './input-row.ts';
import type { Floats, NetworkLayout } from './layout.ts';

/** One W with LayerNorm's gain multiplied in; accumulates gradients of W and the norm over many segments. */
export interface InputMatrix {
  /** Sets the parameters for all calls until the next. */
  load(params: Floats): void;
  /** out = W·norm(row) + bias */
  apply(row: InputRow, out: Float64Array): void;
  /** Records the derivatives by the outputs of `numRows` segments, f64[numRows × stride]. */
  owe(rows: readonly InputRow[], numRows: number, owed: Float64Array): void;
  /** Adds the recorded derivatives to the gradient and clears them. */
  collect(gradient: Floats): void;
}

/** Rows at once: each input value is read once for all of them. */
const AT_ONCE = 4;

/** Length of the matrices' output vectors: hidden units in whole groups, the last ones unused. */
export const strideOf = ({ numHidden }: NetworkLayout): number => Math.ceil(numHidden / AT_ONCE) * AT_ONCE;

/** `maskPositions`: ascending positions in W, null for all. Returns the start of each row and the columns. */
function entriesOf({ numHidden, numInputs }: NetworkLayout, maskPositions: Int32Array | null) {
  const positions = maskPositions ?? Int32Array.from({ length: numHidden * numInputs }, (_, i) => i);
  const starts = new Int32Array(numHidden + 1);
  for (const position of positions) starts[Math.floor(position / numInputs) + 1]! += 1;
  for (let row = 0; row < numHidden; row++) starts[row + 1]! += starts[row]!;
  return { positions, starts, cols: positions.map((position) => position % numInputs) };
}

export function createInputMatrix(
  layout: NetworkLayout,
  at: number,
  bias: number,
  maskPositions: Int32Array | null,
): InputMatrix {
  const { numInputs, numHidden, normGain, normBias } = layout;
  const { positions, starts, cols } = entriesOf(layout, maskPositions);
  const stride = strideOf(layout);
  const weights = new Float64Array(positions.length);
  /** W · gain; without a mask f64[stride × numInputs]. */
  const values = new Float64Array(maskPositions === null ? stride * numInputs : positions.length);
  const noted = new Float64Array(values.length);
  const gains = new Float64Array(numInputs);
  const shifts = new Float64Array(numInputs);
  /** By hidden unit: the sum of `values`, to subtract the mean of an input, and the constant part. */
  const [sums, constants] = [new Float64Array(stride), new Float64Array(stride)];
  /** By hidden unit, summed over segments: the derivative, and the derivative times mean and scale. */
  const [owedSums, owedMeans] = [new Float64Array(stride), new Float64Array(stride)];

  const applyAll = ({ values: input, numUsed, mean, scale }: InputRow, out: Float64Array): void => {
    for (let i = 0; i < stride; i += AT_ONCE) {
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      const a0 = i * numInputs;
      const [a1, a2, a3] = [a0 + numInputs, a0 + 2 * numInputs, a0 + 3 * numInputs];
      for (let j = 0; j < numUsed; j++) {
        const x = input[j]!;
        s0 += values[a0 + j]! * x;
        s1 += values[a1 + j]! * x;
        s2 += values[a2 + j]! * x;
        s3 += values[a3 + j]! * x;
      }
      out[i] = scale * (s0 - mean * sums[i]!) + constants[i]!;
      out[i + 1] = scale * (s1 - mean * sums[i + 1]!) + constants[i + 1]!;
      out[i + 2] = scale * (s2 - mean * sums[i + 2]!) + constants[i + 2]!;
      out[i + 3] = scale * (s3 - mean * sums[i + 3]!) + constants[i + 3]!;
    }
  };
  const applyKept = ({ values: input, numUsed, mean, scale }: InputRow, out: Float64Array): void => {
    for (let i = 0; i < numHidden; i++) {
      let sum = 0;
      for (let k = starts[i]!, end = starts[i + 1]!; k < end && cols[k]! < numUsed; k++)
        sum += values[k]! * input[cols[k]!]!;
      out[i] = scale * (sum - mean * sums[i]!) + constants[i]!;
    }
  };
  const noteOne = ({ values: input, numUsed, scale }: InputRow, owed: Float64Array, from: number): void => {
    for (let i = 0; i < numHidden; i++) {
      const share = owed[from + i]! * scale;
      if (maskPositions === null)
        for (let j = 0, a = i * numInputs; j < numUsed; j++, a++) noted[a]! += share * input[j]!;
      else
        for (let k = starts[i]!, end = starts[i + 1]!; k < end && cols[k]! < numUsed; k++)
          noted[k]! += share * input[cols[k]!]!;
    }
  };
  /** Four segments in one pass over the matrix, which is too large to be read and written for each. */
  const noteFour = (rows: readonly InputRow[], first: number, owed: Float64Array): void => {
    const [r0, r1, r2, r3] = [rows[first]!, rows[first + 1]!, rows[first + 2]!, rows[first + 3]!];
    const [x0, x1, x2, x3] = [r0.values, r1.values, r2.values, r3.values];
    const numUsed = Math.max(r0.numUsed, r1.numUsed, r2.numUsed, r3.numUsed);
    for (let i = 0; i < numHidden; i++) {
      const from = first * stride + i;
      const [c0, c1] = [owed[from]! * r0.scale, owed[from + stride]! * r1.scale];
      const [c2, c3] = [owed[from + 2 * stride]! * r2.scale, owed[from + 3 * stride]! * r3.scale];
      for (let j = 0, a = i * numInputs; j < numUsed; j++, a++)
        noted[a]! += c0 * x0[j]! + c1 * x1[j]! + c2 * x2[j]! + c3 * x3[j]!;
    }
  };

  return {
    load(params) {
      for (let j = 0; j < numInputs; j++) {
        gains[j] = params[normGain + j]!;
        shifts[j] = params[normBias + j]!;
      }
      for (let i = 0; i < numHidden; i++) {
        let [sum, constant] = [0, params[bias + i]!];
        for (let k = starts[i]!; k < starts[i + 1]!; k++) {
          const weight = (weights[k] = params[at + positions[k]!]!);
          sum += values[k] = weight * gains[cols[k]!]!;
          constant += weight * shifts[cols[k]!]!;
        }
        sums[i] = sum;
        constants[i] = constant;
      }
    },
    apply: maskPositions === null ? applyAll : applyKept,
    owe(rows, numRows, owed) {
      let row = 0;
      if (maskPositions === null) for (; row + AT_ONCE <= numRows; row += AT_ONCE) noteFour(rows, row, owed);
      for (; row < numRows; row++) noteOne(rows[row]!, owed, row * stride);
      for (row = 0; row < numRows; row++) {
        const factor = rows[row]!.scale * rows[row]!.mean;
        for (let i = 0; i < numHidden; i++) {
          owedSums[i]! += owed[row * stride + i]!;
          owedMeans[i]! += owed[row * stride + i]! * factor;
        }
      }
    },
    collect(gradient) {
      for (let i = 0; i < numHidden; i++) {
        const [sum, mean] = [owedSums[i]!, owedMeans[i]!];
        for (let k = starts[i]!; k < starts[i + 1]!; k++) {
          const col = cols[k]!;
          const share = noted[k]! - mean;
          gradient[at + positions[k]!]! += gains[col]! * share + shifts[col]! * sum;
          gradient[normGain + col]! += weights[k]! * share;
          gradient[normBias + col]! += weights[k]! * sum;
        }
        gradient[bias + i]! += sum;
      }
      noted.fill(0);
      owedSums.fill(0);
      owedMeans.fill(0);
    },
  };
}
