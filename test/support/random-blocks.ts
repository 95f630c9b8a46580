import { floatToBfloat, floatToHalf } from '../../src/core/half.ts';
import { createRandom } from '../../src/core/random.ts';
import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { quantFormats } from '../../src/quant/index.ts';
import { createNormal } from './random-values.ts';

interface ScaleFields {
  /** Offset of a block's f16 scale. */
  scale: number;
  /** Offset of the f16 scale of its minimum, if it has one. */
  min?: number;
  /** For scales that are no f16 at one place. Infinity becomes the largest possible scale. */
  write?(view: DataView, offset: number, value: number): void;
}

const writeFloat = (view: DataView, offset: number, value: number): void => view.setFloat32(offset, value, true);
const writeExponent = (view: DataView, offset: number, value: number): void =>
  view.setUint8(offset, value === 0 ? 0 : Math.min(255, Math.round(Math.log2(value)) + 127));
/** Four scales of different size, with three exponents and a mantissa each. */
const writeSmallFloats = (view: DataView, offset: number, value: number): void => {
  for (let i = 0; i < 4; i++) {
    const scale = value * (1 - i / 8);
    const exponent = scale === 0 ? 0 : Math.max(1, Math.min(15, Math.floor(Math.log2(scale)) + 7));
    const mantissa = scale === 0 ? 0 : Math.max(0, Math.min(6, Math.round((scale / 2 ** (exponent - 7) - 1) * 8)));
    view.setUint8(offset + i, exponent * 8 + mantissa);
  }
};
const writeNibbles = (view: DataView, offset: number, value: number): void => {
  for (let i = 0; i < 4; i++) {
    const at = offset + 49 + 2 * i;
    view.setUint8(at, (view.getUint8(at) & 15) | (((floatToHalf(value) >> (4 * i)) & 15) << 4));
  }
};

/** The scale of the blocks of each quantized type. */
export const scaleFields: Partial<Record<TensorTypeName, ScaleFields>> = {
  Q4_0: { scale: 0 },
  Q4_1: { scale: 0, min: 2 },
  Q5_0: { scale: 0 },
  Q5_1: { scale: 0, min: 2 },
  Q8_0: { scale: 0 },
  Q2_K: { scale: 80, min: 82 },
  Q3_K: { scale: 108 },
  Q4_K: { scale: 0, min: 2 },
  Q5_K: { scale: 0, min: 2 },
  Q6_K: { scale: 208 },
  IQ2_XXS: { scale: 0 },
  IQ4_NL: { scale: 0 },
  IQ4_XS: { scale: 0 },
  Q8_K: { scale: 0, write: writeFloat },
  IQ1_S: { scale: 0 },
  IQ1_M: { scale: 0, write: writeNibbles },
  IQ2_XS: { scale: 0 },
  IQ2_S: { scale: 0 },
  IQ3_XXS: { scale: 0 },
  IQ3_S: { scale: 0 },
  TQ1_0: { scale: 52 },
  TQ2_0: { scale: 64 },
  Q1_0: { scale: 0 },
  Q2_0: { scale: 0 },
  MXFP4: { scale: 0, write: writeExponent },
  NVFP4: { scale: 0, write: writeSmallFloats },
};

/** Writes the scale of the block at `offset`. */
export function writeScale(type: TensorTypeName, view: DataView, offset: number, value: number): void {
  const { scale, write } = scaleFields[type]!;
  if (write !== undefined) write(view, offset, value);
  else view.setUint16(offset + scale, floatToHalf(value), true);
}

/**
 * Random GGUF blocks of any type with about the given standard deviation: every code and sub-scale bit is random, so
 * that kernels see all of them, unlike blocks from a quantizer.
 */
export function randomBlocks(type: TensorTypeName, numValues: number, seed: number, deviation = 1): Uint8Array {
  const format = quantFormats[type];
  const fields = scaleFields[type];
  const numBlocks = numValues / format.blockSize;
  const bytes = new Uint8Array(numBlocks * format.blockBytes);
  const view = new DataView(bytes.buffer);
  const random = createRandom(seed);
  const normal = createNormal(random);
  if (fields === undefined) {
    for (let i = 0; i < numValues; i++) {
      if (type === 'F32') view.setFloat32(i * 4, normal() * deviation, true);
      else view.setUint16(i * 2, (type === 'F16' ? floatToHalf : floatToBfloat)(normal() * deviation), true);
    }
    return bytes;
  }
  const write = (offset: number, scale: number, min: number): void => {
    writeScale(type, view, offset, scale);
    if (fields.min !== undefined) view.setUint16(offset + fields.min, floatToHalf(min), true);
  };
  const values = new Float32Array(format.blockSize);
  const valuesAt = (offset: number, scale: number, min: number): Float32Array => {
    write(offset, scale, min);
    format.dequantize(bytes, offset, values, 0, 1);
    return values;
  };
  for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(random.next() * 256);
  for (let block = 0; block < numBlocks; block++) {
    const offset = block * format.blockBytes;
    // First the minimum that centres the block, then the scale that gives the deviation within a factor of two.
    const offsetMean = fields.min === undefined ? 0 : mean(valuesAt(offset, 0, 1));
    const min = offsetMean === 0 ? 0 : -mean(valuesAt(offset, 1, 0)) / offsetMean;
    const spread = Math.sqrt(meanSquare(valuesAt(offset, 1, min))) || 1;
    const scale = (deviation * (0.7 + 0.6 * random.next())) / spread;
    write(offset, scale, min * scale);
  }
  return bytes;
}

function mean(values: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}

function meanSquare(values: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Math.fround(values[i]! * values[i]!);
  return sum / values.length;
}
