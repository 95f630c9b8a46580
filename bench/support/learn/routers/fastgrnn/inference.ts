import { NORM_EPSILON } from './input-row.ts';
import type { NetworkLayout } from './layout.ts';
import type { Mask } from './sparsity.ts';

/** The kept entries of one W, row by row, with LayerNorm's gain multiplied in. */
interface Rows {
  /** First entry of each row, and the end of the last: i32[numHidden + 1]. */
  readonly starts: Int32Array;
  readonly cols: Int32Array;
  /** W · gain */
  readonly values: Float64Array;
  /** Sum of `values` by row, to subtract the mean of the input. */
  readonly sums: Float64Array;
  /** W · (bias of the norm) + bias of the gate. */
  readonly constants: Float64Array;
}

function rowsOf(layout: NetworkLayout, params: Float32Array, at: number, bias: number, positions: Int32Array): Rows {
  const { numHidden, numInputs, normGain, normBias } = layout;
  const starts = new Int32Array(numHidden + 1);
  const values = new Float64Array(positions.length);
  const sums = new Float64Array(numHidden);
  const constants = Float64Array.from(params.subarray(bias, bias + numHidden));
  const cols = positions.map((position) => position % numInputs);
  positions.forEach((position, k) => {
    const row = Math.floor(position / numInputs);
    const weight = params[at + position]!;
    values[k] = weight * params[normGain + cols[k]!]!;
    sums[row]! += values[k]!;
    constants[row]! += weight * params[normBias + cols[k]!]!;
    starts[row + 1]! += 1;
  });
  for (let row = 0; row < numHidden; row++) starts[row + 1]! += starts[row]!;
  return { starts, cols, values, sums, constants };
}

/** The network with fixed parameters, for inference: no tape and no allocations. The next call overwrites its result. */
export function createInference(
  layout: NetworkLayout,
  params: Float32Array,
  mask: Mask,
): (segments: readonly Float32Array[]) => Float64Array {
  const { numInputs, numHidden, rank, numOutputs } = layout;
  const gate = rowsOf(layout, params, layout.wz, layout.biasZ, mask.wz);
  const cell = rowsOf(layout, params, layout.wh, layout.biasH, mask.wh);
  const part = (at: number, size: number): Float64Array => Float64Array.from(params.subarray(at, at + size));
  const size = numHidden * rank;
  const columns = (at: number): Float64Array => Float64Array.from({ length: size }, (_, i) => params[at + (i % numHidden) * rank + Math.floor(i / numHidden)]!); // prettier-ignore
  // A by columns, so that both halves of a product read memory in order.
  const [az, bz, ah, bh] = [columns(layout.az), part(layout.bz, size), columns(layout.ah), part(layout.bh, size)];
  const heads = part(layout.heads, numOutputs * numHidden);
  const headBias = part(layout.headBias, numOutputs);
  const [zeta, nu] = [params[layout.zeta]!, params[layout.nu]!];
  const [sumZ, sumH, state] = [new Float64Array(numHidden), new Float64Array(numHidden), new Float64Array(numHidden)];
  const outputs = new Float64Array(numOutputs);

  const addInput = (rows: Rows, input: Float32Array, mean: number, scale: number, out: Float64Array): void => {
    const { starts, cols, values, sums, constants } = rows;
    for (let i = 0, k = 0; i < numHidden; i++) {
      let sum = 0;
      for (const end = starts[i + 1]!; k < end; k++) sum += values[k]! * input[cols[k]!]!;
      out[i] = scale * (sum - mean * sums[i]!) + constants[i]!;
    }
  };
  /** out += A · (B · state) */
  const addState = (a: Float64Array, b: Float64Array, out: Float64Array): void => {
    for (let r = 0; r < rank; r++) {
      let inner = 0;
      for (let j = 0, at = r * numHidden; j < numHidden; j++, at++) inner += b[at]! * state[j]!;
      for (let i = 0, at = r * numHidden; i < numHidden; i++, at++) out[i]! += a[at]! * inner;
    }
  };

  return (segments) => {
    state.fill(0);
    for (let t = 0; t < segments.length; t++) {
      const input = segments[t]!;
      let [sum, squared] = [0, 0];
      for (let i = 0; i < numInputs; i++) sum += input[i]!;
      const mean = sum / numInputs;
      for (let i = 0; i < numInputs; i++) squared += (input[i]! - mean) * (input[i]! - mean);
      const scale = 1 / Math.sqrt(squared / numInputs + NORM_EPSILON);
      addInput(gate, input, mean, scale, sumZ);
      addInput(cell, input, mean, scale, sumH);
      if (t > 0) {
        addState(az, bz, sumZ);
        addState(ah, bh, sumH);
      }
      for (let i = 0; i < numHidden; i++) {
        const z = 1 / (1 + Math.exp(-sumZ[i]!));
        state[i] = (zeta * (1 - z) + nu) * (1 - 2 / (1 + Math.exp(2 * sumH[i]!))) + z * state[i]!;
      }
    }
    for (let o = 0; o < numOutputs; o++) {
      let sum = headBias[o]!;
      for (let i = 0, at = o * numHidden; i < numHidden; i++, at++) sum += heads[at]! * state[i]!;
      outputs[o] = sum;
    }
    return outputs;
  };
}
