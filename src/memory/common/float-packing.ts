import { RuvLLMError } from '../../core/errors.ts';

/** `String.fromCharCode` takes its arguments from the stack: more than some 100 000 overflow it. */
const CHUNK_BYTES = 0x8000;

export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(start, start + CHUNK_BYTES));
  }
  return btoa(binary);
}

/** Little-endian bytes of floats, whatever the machine's order: what a hash is taken of. */
export function floatBytes(values: Float32Array): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < values.length; i++) view.setFloat32(i * 4, values[i]!, true);
  return bytes;
}

/** Floats as text that JSON keeps exactly, in a third of the size of their digits. */
export function packFloats(values: Float32Array): string {
  return toBase64(floatBytes(values));
}

export function unpackFloats(text: string): Float32Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch (error) {
    throw new RuvLLMError('io', `packed floats of ${text.length} characters are not base64`, { cause: error });
  }
  if (binary.length % 4 !== 0) {
    throw new RuvLLMError('io', `packed floats have ${binary.length} bytes, not a multiple of 4`);
  }
  const view = new DataView(new ArrayBuffer(binary.length));
  for (let i = 0; i < binary.length; i++) view.setUint8(i, binary.charCodeAt(i));
  const values = new Float32Array(binary.length / 4);
  for (let i = 0; i < values.length; i++) values[i] = view.getFloat32(i * 4, true);
  return values;
}
