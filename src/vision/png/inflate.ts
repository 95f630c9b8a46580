import { invalidImage } from '../image-error.ts';

/** Decompresses zlib data of exactly `sizeBytes`; stops at the first byte too many, so that a bomb takes no memory. */
export async function inflate(data: Uint8Array<ArrayBuffer>, sizeBytes: number): Promise<Uint8Array> {
  const out = new Uint8Array(sizeBytes);
  let at = 0;
  const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream('deflate')).getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const { length } = part.value as Uint8Array;
      if (at + length > sizeBytes) {
        throw invalidImage(`the PNG has more than the ${sizeBytes} bytes of its size`, { sizeBytes });
      }
      out.set(part.value as Uint8Array, at);
      at += length;
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'RuvLLMError') throw error;
    throw invalidImage(`the pixels of the PNG cannot be decompressed after ${at} of ${sizeBytes} bytes`);
  } finally {
    await reader.cancel().catch(() => {});
  }
  if (at !== sizeBytes) throw invalidImage(`the PNG has ${at} of ${sizeBytes} bytes of pixels`, { sizeBytes });
  return out;
}
