import { RuvLLMError } from '../../core/errors.ts';
import type { Metric } from './types.ts';

const refuse = (message: string): never => {
  throw new RuvLLMError('invalid_option', message);
};

export function checkKey(key: unknown): void {
  if (typeof key !== 'number' || !Number.isSafeInteger(key) || key < 1) {
    refuse(`a key must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}, got ${String(key)}`);
  }
}

export function checkCount(what: string, value: unknown, most: number): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most) {
    refuse(`${what} must be an integer from 1 to ${most}, got ${String(value)}`);
  }
}

/** What one vector is divided by before it is compared: its length under cosine. Throws where it cannot be compared. */
function divisorOf(vector: Float32Array, metric: Metric): number {
  let square = 0;
  for (let i = 0; i < vector.length; i++) {
    const value = vector[i]!;
    square += value * value;
    if (!Number.isFinite(value)) refuse(`value ${i} of a vector is ${value}`);
  }
  if (metric !== 'cosine') return 1;
  if (square === 0) refuse('a zero vector has no direction, which cosine compares');
  return Math.sqrt(square);
}

/** Writes a vector as it is compared; one that was normalized already keeps its bits. */
export function writeVector(vector: unknown, dim: number, metric: Metric, out: Float32Array): void {
  if (!(vector instanceof Float32Array)) refuse('a vector must be a Float32Array');
  const values = vector as Float32Array;
  if (values.length !== dim) refuse(`a vector has ${values.length} values, this index has ${dim}`);
  const divisor = divisorOf(values, metric);
  // Rounding leaves a normalized vector off by this much at most: dividing again would change it each time it is read and added.
  if (Math.abs(divisor - 1) < 1e-6) out.set(values);
  else for (let i = 0; i < dim; i++) out[i] = values[i]! / divisor;
}

/** Tells vectors apart for a table: equal ones have equal hashes (-0 and 0 are not equal here, and may be kept twice). */
export function hashVector(vector: Float32Array): number {
  const words = new Uint32Array(vector.buffer, vector.byteOffset, vector.length);
  let hash = 0x9e3779b9;
  for (let i = 0; i < words.length; i++) {
    hash = Math.imul(hash ^ words[i]!, 0x85ebca6b);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}

/** Rounds to bytes by the largest magnitude; the scale. */
export function roundToBytes(vector: Float32Array, out: Int8Array): number {
  let peak = 0;
  for (let i = 0; i < vector.length; i++) peak = Math.max(peak, Math.abs(vector[i]!));
  const scale = Math.fround(peak / 127);
  for (let i = 0; i < vector.length; i++) {
    out[i] = scale === 0 ? 0 : Math.max(-127, Math.min(127, Math.round(vector[i]! / scale)));
  }
  return scale;
}
