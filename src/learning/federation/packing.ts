import { RuvLLMError } from '../../core/errors.ts';
import { toBase64 } from '../../memory/common/float-packing.ts';

/** The largest value of a vector in 8 bits. */
const VECTOR_STEP = 127;

export const bytesOf = (array: Float32Array | Uint16Array | Int8Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

export function unpack(text: string, what: string, step: number): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch (cause) {
    throw new RuvLLMError('invalid_option', `bundle: "${what}" is not base64`, { cause });
  }
  if (binary.length % step !== 0)
    throw new RuvLLMError('invalid_option', `bundle: "${what}" has ${binary.length} bytes, not a multiple of ${step}`);
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

export function packVector(vector: Float32Array): string {
  const length = Math.hypot(...vector);
  return toBase64(
    bytesOf(Int8Array.from(vector, (value) => (length > 0 ? Math.round((value / length) * VECTOR_STEP) : 0))),
  );
}

/** Of unit length, however long the peer says it is. */
export function unpackVector(text: string): Float32Array {
  const values = Float32Array.from(new Int8Array(unpack(text, 'vector', 1).buffer));
  const length = Math.hypot(...values);
  return values.map((value) => (length > 0 ? value / length : 0));
}
