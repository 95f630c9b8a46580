import type { AddOp, Arena, CausalConvOp, DeltaScanOp, SelectiveScanOp, StateRows } from '../contract.ts';
import { checkConv, checkDelta, checkScan } from '../op-limits.ts';

export function multiply(arena: Arena, { x, y, out, count }: AddOp): void {
  const [left, right, target] = [arena.f32(x, count), arena.f32(y, count), arena.f32(out, count)];
  for (let i = 0; i < count; i++) target[i] = left[i]! * right[i]!;
}

export function sigmoidGate(arena: Arena, { x, y, out, count }: AddOp): void {
  const [gates, values, target] = [arena.f32(x, count), arena.f32(y, count), arena.f32(out, count)];
  for (let i = 0; i < count; i++) target[i] = values[i]! / (1 + Math.exp(-gates[i]!));
}

/** Calls `run` with each row in order and the state before it, which `run` updates. */
function forEachRow(
  arena: Arena,
  op: StateRows,
  numValues: number,
  run: (row: number, state: Float32Array) => void,
): void {
  const { states, partOffset, numSequences } = op;
  const sequences = arena.i32(op.sequences, numSequences * 4);
  const table = arena.i32(op.stateTable, numSequences * 3);
  const partOf = (state: number): Float32Array =>
    arena.f32(states.base + state * states.stateBytes + partOffset, numValues);
  for (let s = 0; s < numSequences; s++) {
    const [firstRow, numRows, contextTokens] = sequences.subarray(s * 4, s * 4 + 3) as unknown as Triple;
    const [state, rowsToCopy, copy] = table.subarray(s * 3, s * 3 + 3) as unknown as Triple;
    const part = partOf(state);
    if (contextTokens === numRows) part.fill(0);
    for (let i = 0; i < numRows; i++) {
      run(firstRow + i, part);
      if (i + 1 === rowsToCopy) partOf(copy).set(part);
    }
  }
}

type Triple = [number, number, number];

export function causalConv(arena: Arena, op: CausalConvOp): void {
  checkConv(op);
  const { channels, width, activation } = op;
  const weight = arena.f32(op.weight, width * channels);
  const bias = op.bias === null ? new Float32Array(channels) : arena.f32(op.bias, channels);
  const numPast = (width - 1) * channels;
  forEachRow(arena, op, numPast, (row, past) => {
    const x = arena.f32(op.x + row * channels * 4, channels);
    const out = arena.f32(op.out + row * channels * 4, channels);
    for (let c = 0; c < channels; c++) {
      let sum = bias[c]! + weight[numPast + c]! * x[c]!;
      for (let j = 0; j < width - 1; j++) sum += weight[j * channels + c]! * past[j * channels + c]!;
      out[c] = activation === 'silu' ? sum / (1 + Math.exp(-sum)) : sum;
    }
    past.copyWithin(0, channels);
    past.set(x, numPast - channels);
  });
}

const softplus = (x: number): number => (x > 20 ? x : Math.log1p(Math.exp(x)));

export function selectiveScan(arena: Arena, op: SelectiveScanOp): void {
  checkScan(op);
  const { numHeads, headDim, numGroups, stateDim } = op;
  const [a, d, dtBias] = [op.a, op.d, op.dtBias].map((at) => arena.f32(at, numHeads)) as Floats;
  forEachRow(arena, op, numHeads * headDim * stateDim, (row, state) => {
    const rowOf = (at: number, length: number): Float32Array => arena.f32(at + row * length * 4, length);
    const [x, out, dt] = [rowOf(op.x, numHeads * headDim), rowOf(op.out, numHeads * headDim), rowOf(op.dt, numHeads)];
    const [b, c] = [rowOf(op.b, numGroups * stateDim), rowOf(op.c, numGroups * stateDim)];
    for (let h = 0; h < numHeads; h++) {
      const step = softplus(dt[h]! + dtBias[h]!);
      const decay = Math.exp(step * a[h]!);
      const group = Math.floor(h / (numHeads / numGroups)) * stateDim;
      for (let i = h * headDim; i < (h + 1) * headDim; i++) {
        const input = x[i]! * step;
        let sum = 0;
        for (let n = 0; n < stateDim; n++) {
          const next = Math.fround(state[i * stateDim + n]! * decay + input * b[group + n]!);
          state[i * stateDim + n] = next;
          sum += next * c[group + n]!;
        }
        out[i] = sum + d[h]! * x[i]!;
      }
    }
  });
}

export function deltaScan(arena: Arena, op: DeltaScanOp): void {
  checkDelta(op);
  const { numHeads, numKeyHeads, keyDim, valueDim, sharing, epsilon } = op;
  const [a, dtBias] = [arena.f32(op.a, numHeads), arena.f32(op.dtBias, numHeads)];
  forEachRow(arena, op, numHeads * valueDim * keyDim, (row, state) => {
    const rowOf = (at: number, length: number): Float32Array => arena.f32(at + row * length * 4, length);
    const [q, k] = [rowOf(op.q, numKeyHeads * keyDim), rowOf(op.k, numKeyHeads * keyDim)];
    const [v, out] = [rowOf(op.v, numHeads * valueDim), rowOf(op.out, numHeads * valueDim)];
    const [dt, beta] = [rowOf(op.dt, numHeads), rowOf(op.beta, numHeads)];
    for (let h = 0; h < numHeads; h++) {
      const keyHead = sharing === 'every' ? h % numKeyHeads : Math.floor(h / (numHeads / numKeyHeads));
      const key = unit(k.subarray(keyHead * keyDim, (keyHead + 1) * keyDim), epsilon);
      const query = unit(q.subarray(keyHead * keyDim, (keyHead + 1) * keyDim), epsilon);
      const decay = Math.exp(softplus(dt[h]! + dtBias[h]!) * a[h]!);
      const strength = 1 / (1 + Math.exp(-beta[h]!));
      for (let i = h * valueDim; i < (h + 1) * valueDim; i++) {
        const part = state.subarray(i * keyDim, (i + 1) * keyDim);
        const known = key.reduce((sum, value, n) => sum + value * part[n]! * decay, 0);
        const update = strength * (v[i]! - known);
        let sum = 0;
        for (let n = 0; n < keyDim; n++) {
          part[n] = part[n]! * decay + key[n]! * update;
          sum += part[n]! * query[n]!;
        }
        out[i] = sum / Math.sqrt(keyDim);
      }
    }
  });
}

/** The vector with length 1, unless it is shorter than `epsilon`. */
function unit(vector: Float32Array, epsilon: number): Float64Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return Float64Array.from(vector, (value) => value / Math.max(length, epsilon));
}

type Floats = [Float32Array, Float32Array, Float32Array];
