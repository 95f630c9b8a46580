import { RuvLLMError } from './errors.ts';

/**
 * Random access to the bytes of one file. Model parsers use only this, so that a file, a test buffer and a browser blob
 * look the same, and only the requested ranges are read.
 */
export interface ByteSource {
  /** Shown in error messages; a path or a URL. */
  readonly name: string;
  readonly sizeBytes: number;
  /**
   * Fills `target` with the bytes at `offset`; throws `io` when fewer are left. Synchronous: the loader runs in a
   * worker and copies straight into the kernel arena (`target` may view a SharedArrayBuffer).
   */
  readInto(target: Uint8Array, offset: number): void;
  close(): void;
}

/** A `ByteSource` over bytes already in memory. */
export function createMemorySource(bytes: Uint8Array, name = 'memory'): ByteSource {
  return {
    name,
    sizeBytes: bytes.byteLength,
    readInto(target, offset) {
      if (offset < 0 || offset + target.byteLength > bytes.byteLength) {
        throw new RuvLLMError(
          'io',
          `${name}: cannot read ${target.byteLength} bytes at byte ${offset} of ${bytes.byteLength}`,
        );
      }
      target.set(bytes.subarray(offset, offset + target.byteLength));
    },
    close() {},
  };
}
