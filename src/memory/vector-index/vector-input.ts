import { checkInteger, refuse } from '../../core/options.ts';
import type { Metric } from './types.ts';

export const checkKey = (key: unknown): number => checkInteger(key, 'key', 1, Number.MAX_SAFE_INTEGER);

const refuseVector = (message: string): never => refuse(message, 'vector');

/** The divisor of a vector: its length for cosine. Throws for one that cannot be compared. */
function divisorOf(vector: Float32Array, metric: Metric): number {
  let square = 0;
  for (let i = 0; i < vector.length; i++) {
    const value = vector[i]!;
    square += value * value;
    if (!Number.isFinite(value)) refuseVector(`value ${i} of a vector is ${value}`);
  }
  if (metric !== 'cosine') return 1;
  if (square === 0) refuseVector('a zero vector cannot be compared by cosine');
  return Math.sqrt(square);
}

/** Writes a normalized copy; a normalized vector keeps its bits. */
export function writeVector(vector: unknown, dim: number, metric: Metric, out: Float32Array): void {
  if (!(vector instanceof Float32Array)) refuseVector('a vector must be a Float32Array');
  const values = vector as Float32Array;
  if (values.length !== dim) refuseVector(`the vector has ${values.length} values, the index has ${dim}`);
  const divisor = divisorOf(values, metric);
  // Rounding leaves a normalized vector within this bound: dividing again would change it each time.
  if (Math.abs(divisor - 1) < 1e-6) out.set(values);
  else for (let i = 0; i < dim; i++) out[i] = values[i]! / divisor;
}

/** Equal vectors have equal hashes (-0 and 0 differ, and may be stored twice). */
export function hashVector(vector: Float32Array): number {
  const words = new Uint32Array(vector.buffer, vector.byteOffset, vector.length);
  let hash = 0x9e3779b9;
  for (let i = 0; i < words.length; i++) {
    hash = Math.imul(hash ^ words[i]!, 0x85ebca6b);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}

/** Rounds to bytes by the largest magnitude; returns the scale. */
export function roundToBytes(vector: Float32Array, out: Int8Array): number {
  let peak = 0;
  for (let i = 0; i < vector.length; i++) peak = Math.max(peak, Math.abs(vector[i]!));
  const scale = Math.fround(peak / 127);
  for (let i = 0; i < vector.length; i++) {
    out[i] = scale === 0 ? 0 : Math.max(-127, Math.min(127, Math.round(vector[i]! / scale)));
  }
  return scale;
}
