import { bfloatToFloat, floatToBfloat, floatToHalf, halfToFloat } from '../core/half.ts';
import { roundToEven } from '../core/rounding.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';

/** How activations are rounded before a product with weights of a type. */
export type ActivationRoundingName = 'none' | 'bf16' | 'q8_0' | 'q8_k';

/** A row as signed bytes with one scale per block: value[i] = quants[i] * scales[floor(i / blockSize)]. */
export interface RoundedRow {
  readonly quants: Int8Array;
  readonly scales: Float32Array;
  readonly blockSize: number;
}

/**
 * Integer dot products need integer activations, so every pack rounds them the same way: packs then agree to float
 * noise, and with llama.cpp too. (It keeps half-precision sums with Q4_1 and Q5_1, which are less exact; we do not.)
 */
export const activationRounding: Readonly<Record<TensorTypeName, ActivationRoundingName>> = Object.freeze({
  F32: 'none',
  F16: 'none',
  BF16: 'bf16',
  Q4_0: 'q8_0',
  Q4_1: 'q8_0',
  Q5_0: 'q8_0',
  Q5_1: 'q8_0',
  Q8_0: 'q8_0',
  IQ4_NL: 'q8_0',
  Q2_K: 'q8_k',
  Q3_K: 'q8_k',
  Q4_K: 'q8_k',
  Q5_K: 'q8_k',
  Q6_K: 'q8_k',
  Q8_K: 'q8_k',
  IQ1_S: 'q8_k',
  IQ1_M: 'q8_k',
  IQ2_XXS: 'q8_k',
  IQ2_XS: 'q8_k',
  IQ2_S: 'q8_k',
  IQ3_XXS: 'q8_k',
  IQ3_S: 'q8_k',
  IQ4_XS: 'q8_k',
  TQ1_0: 'q8_k',
  TQ2_0: 'q8_k',
  Q1_0: 'q8_0',
  Q2_0: 'q8_0',
  MXFP4: 'q8_0',
  NVFP4: 'q8_0',
});

const Q8_0_BLOCK = 32;
const Q8_K_BLOCK = 256;

/** Blocks of 32. The product uses the scale rounded to f16, while the quants are computed with the f32 scale. */
export function roundRowQ8_0(x: Float32Array): RoundedRow {
  const quants = new Int8Array(x.length);
  const scales = new Float32Array(x.length / Q8_0_BLOCK);
  for (let block = 0; block < scales.length; block++) {
    const start = block * Q8_0_BLOCK;
    let peak = 0;
    for (let i = start; i < start + Q8_0_BLOCK; i++) peak = Math.max(peak, Math.abs(x[i]!));
    if (peak === 0) continue;
    scales[block] = halfToFloat(floatToHalf(Math.fround(peak / 127)));
    const inverse = Math.fround(127 / peak);
    for (let i = start; i < start + Q8_0_BLOCK; i++) quants[i] = roundToEven(Math.fround(x[i]! * inverse));
  }
  return { quants, scales, blockSize: Q8_0_BLOCK };
}

/** Blocks of 256; the value with the largest magnitude, the first of equals, becomes -127, whatever its sign. */
export function roundRowQ8_K(x: Float32Array): RoundedRow {
  const quants = new Int8Array(x.length);
  const scales = new Float32Array(x.length / Q8_K_BLOCK);
  for (let block = 0; block < scales.length; block++) {
    const start = block * Q8_K_BLOCK;
    let peak = 0;
    for (let i = start; i < start + Q8_K_BLOCK; i++) {
      // A NaN stays the peak: through the scale it reaches the whole block instead of rounding to 0.
      if (Math.abs(x[i]!) > Math.abs(peak) || Number.isNaN(x[i]!)) peak = x[i]!;
    }
    if (peak === 0) continue;
    const inverse = Math.fround(-127 / peak);
    scales[block] = 1 / inverse;
    for (let i = start; i < start + Q8_K_BLOCK; i++) {
      quants[i] = Math.min(127, roundToEven(Math.fround(inverse * x[i]!)));
    }
  }
  return { quants, scales, blockSize: Q8_K_BLOCK };
}

const rounders: Readonly<Record<ActivationRoundingName, (x: Float32Array) => Float32Array>> = {
  none: (x) => x,
  bf16: (x) => x.map((value) => bfloatToFloat(floatToBfloat(value))),
  q8_0: (x) => expand(roundRowQ8_0(x)),
  q8_k: (x) => expand(roundRowQ8_K(x)),
};

/** The row as the kernels see it: rounded and decoded, or unchanged. */
export function roundRow(x: Float32Array, rounding: ActivationRoundingName): Float32Array {
  return rounders[rounding](x);
}

function expand({ quants, scales, blockSize }: RoundedRow): Float32Array {
  const values = new Float32Array(quants.length);
  for (let i = 0; i < values.length; i++) values[i] = quants[i]! * scales[Math.floor(i / blockSize)]!;
  return values;
}
