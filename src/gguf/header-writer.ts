import { RuvLLMError } from '../core/errors.ts';
import { showValue } from '../core/show-value.ts';
import { quote } from './failures.ts';
import { encodeUtf8 } from './utf8.ts';

/** Destination of written bytes. `write` must not keep `bytes`: the buffer is reused. */
export interface ByteSink {
  write(bytes: Uint8Array): void;
}

/** A `ByteSink` in memory, for tests and small files. */
export function createMemorySink(): ByteSink & { toBytes(): Uint8Array<ArrayBuffer> } {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  return {
    write(bytes) {
      chunks.push(bytes.slice());
      sizeBytes += bytes.byteLength;
    },
    toBytes() {
      const all = new Uint8Array(sizeBytes);
      let offset = 0;
      for (const chunk of chunks) {
        all.set(chunk, offset);
        offset += chunk.byteLength;
      }
      return all;
    },
  };
}

/** Combines small writes into large ones and counts them. */
export interface HeaderWriter {
  readonly sizeBytes: number;
  u32(value: number): void;
  u64(value: number): void;
  string(text: string, what: string): void;
  bytes(bytes: Uint8Array): void;
  zeros(sizeBytes: number): void;
  flush(): void;
}

const BUFFER_BYTES = 64 * 1024;

export function createHeaderWriter(sink: ByteSink): HeaderWriter {
  const buffer = new Uint8Array(BUFFER_BYTES);
  const view = new DataView(buffer.buffer);
  let used = 0;
  let flushed = 0;
  const flush = (): void => {
    if (used > 0) sink.write(buffer.subarray(0, used));
    flushed += used;
    used = 0;
  };
  const reserve = (sizeBytes: number): number => {
    if (used + sizeBytes > BUFFER_BYTES) flush();
    used += sizeBytes;
    return used - sizeBytes;
  };
  const u64 = (value: number): void => {
    const at = reserve(8);
    view.setUint32(at, value % 2 ** 32, true);
    view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
  };
  const bytes = (chunk: Uint8Array): void => {
    if (chunk.byteLength <= BUFFER_BYTES) {
      buffer.set(chunk, reserve(chunk.byteLength));
      return;
    }
    flush();
    sink.write(chunk);
    flushed += chunk.byteLength;
  };
  return {
    get sizeBytes() {
      return flushed + used;
    },
    u32: (value) => view.setUint32(reserve(4), value, true),
    u64,
    string(text, what) {
      const encoded = encodeUtf8(text);
      if (encoded === null) {
        throw new RuvLLMError(
          'invalid_option',
          `${what}: ${quote(text)} contains a lone surrogate, which UTF-8 cannot encode`,
        );
      }
      u64(encoded.byteLength);
      bytes(encoded);
    },
    bytes,
    zeros: (sizeBytes) => bytes(new Uint8Array(sizeBytes)),
    flush,
  };
}

/** An error for a metadata value that does not have its declared type. */
export function invalidEntry(what: string, expected: string, value: unknown): never {
  throw new RuvLLMError('invalid_option', `${what} must be ${expected}, got ${showValue(value)}`);
}
