import { floatToHalf, halfToFloat } from '../../core/half.ts';
import { erf } from './erf.ts';
import type {
  AddOp,
  Arena,
  CopyBlocksOp,
  CopyRowsOp,
  GatedActivationOp,
  GeluOp,
  LayerNormOp,
  RmsNormOp,
  RopeOp,
  ScaleOp,
  SoftcapOp,
} from '../contract.ts';

export function rmsNorm(arena: Arena, { x, weight, out, numRows, dim, epsilon }: RmsNormOp): void {
  const weights = arena.f32(weight, dim);
  for (let r = 0; r < numRows; r++) {
    const row = arena.f32(x + r * dim * 4, dim);
    const target = arena.f32(out + r * dim * 4, dim);
    let sumOfSquares = 0;
    for (const value of row) sumOfSquares += value * value;
    const factor = sumOfSquares === Infinity ? NaN : 1 / Math.sqrt(sumOfSquares / dim + epsilon);
    for (let i = 0; i < dim; i++) target[i] = row[i]! * factor * weights[i]!;
  }
}

export function layerNorm(arena: Arena, { x, weight, bias, out, numRows, dim, epsilon }: LayerNormOp): void {
  const [weights, biases] = [arena.f32(weight, dim), arena.f32(bias, dim)];
  for (let r = 0; r < numRows; r++) {
    const row = arena.f32(x + r * dim * 4, dim);
    const target = arena.f32(out + r * dim * 4, dim);
    let sum = 0;
    for (const value of row) sum += value;
    const mean = sum / dim;
    let sumOfSquares = 0;
    for (const value of row) sumOfSquares += (value - mean) ** 2;
    // A value beyond f32 is not a valid activation; all packs give NaN.
    const factor = sumOfSquares / dim <= 3.4e38 ? 1 / Math.sqrt(sumOfSquares / dim + epsilon) : NaN;
    for (let i = 0; i < dim; i++) target[i] = (row[i]! - mean) * factor * weights[i]! + biases[i]!;
  }
}

export function rope(arena: Arena, op: RopeOp): void {
  const { numTokens, numHeads, headDim, rotaryDim } = op;
  const adjacent = op.pairing === 'adjacent';
  for (let t = 0; t < numTokens; t++) {
    const angles = arena.f32(op.cosSin + t * rotaryDim * 4, rotaryDim);
    for (let h = 0; h < numHeads; h++) {
      const head = arena.f32(op.x + (t * numHeads + h) * headDim * 4, headDim);
      for (let pair = 0; pair < rotaryDim / 2; pair++) {
        const i = adjacent ? 2 * pair : pair;
        const j = adjacent ? i + 1 : pair + rotaryDim / 2;
        const [cos, sin, a, b] = [angles[2 * pair]!, angles[2 * pair + 1]!, head[i]!, head[j]!];
        head[i] = a * cos - b * sin;
        head[j] = a * sin + b * cos;
      }
    }
  }
}

const asHalf = (x: number): number => halfToFloat(floatToHalf(x));
const plainTanhGelu = (x: number): number =>
  0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * x * (1 + 0.044715 * x * x)));

/** GELU by tanh, rounded like llama.cpp's table. */
const tanhGelu = (x: number): number => (x <= -10 ? 0 : x >= 10 ? x : asHalf(plainTanhGelu(asHalf(x))));

/** The gate's limit in gpt-oss, and the slope of its sigmoid. */
const LIMIT = 7;
const SLOPE = 1.702;

export const activations: Record<GatedActivationOp['activation'], (gate: number, up: number) => number> = {
  silu: (x, up) => (x / (1 + Math.exp(-x))) * up,
  gelu: (x, up) => tanhGelu(x) * up,
  'clamped-swiglu': (x, up) => {
    const gate = Math.min(x, LIMIT);
    return (gate / (1 + Math.exp(-SLOPE * gate))) * (Math.max(-LIMIT, Math.min(LIMIT, up)) + 1);
  },
};

export function gatedActivation(arena: Arena, { gate, up, out, count, activation }: GatedActivationOp): void {
  const activate = activations[activation];
  const [gates, ups, target] = [arena.f32(gate, count), arena.f32(up, count), arena.f32(out, count)];
  for (let i = 0; i < count; i++) target[i] = activate(gates[i]!, ups[i]!);
}

export function gelu(arena: Arena, { x, count, formula }: GeluOp): void {
  const values = arena.f32(x, count);
  const activate = formula === 'tanh' ? tanhGelu : erfGelu;
  for (let i = 0; i < count; i++) values[i] = activate(values[i]!);
}

const erfGelu = (x: number): number => 0.5 * x * (1 + erf(x / Math.SQRT2));

export function add(arena: Arena, { x, y, out, count }: AddOp): void {
  const [left, right, target] = [arena.f32(x, count), arena.f32(y, count), arena.f32(out, count)];
  for (let i = 0; i < count; i++) target[i] = left[i]! + right[i]!;
}

export function copyBlocks(arena: Arena, { x, out, numOuter, numInner, width, from, to }: CopyBlocksOp): void {
  for (let o = 0; o < numOuter; o++) {
    for (let i = 0; i < numInner; i++) {
      const source = arena.f32(x + (o * from.outer + i * from.inner) * 4, width);
      arena.f32(out + (o * to.outer + i * to.inner) * 4, width).set(source);
    }
  }
}

export function copyRows(arena: Arena, { x, rows, out, numRows, dim }: CopyRowsOp): void {
  const picked = arena.i32(rows, numRows);
  for (let i = 0; i < numRows; i++) arena.f32(out + i * dim * 4, dim).set(arena.f32(x + picked[i]! * dim * 4, dim));
}

export function softcap(arena: Arena, { x, count, cap }: SoftcapOp): void {
  const values = arena.f32(x, count);
  for (let i = 0; i < count; i++) values[i] = cap * Math.tanh(values[i]! / cap);
}

export function scale(arena: Arena, { x, count, factor }: ScaleOp): void {
  const values = arena.f32(x, count);
  for (let i = 0; i < count; i++) values[i]! *= factor;
}
