import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import type { WeightRange } from '../../models/weight-store.ts';
import { createFileSink } from '../../platform/node/files/file-sink.ts';

/**
 * Packed weights as a file:
 *   magic, u32 bytes of the description, SHA-256 of the description, the description (JSON), zeros up to the images'
 *   alignment, then the weights as they lie in the arena, zeros up to the alignment again.
 */
const MAGIC = 'RUVLLMW1';
const PREAMBLE_BYTES = 8 + 4 + 32;
/** 24 bytes per MiB of weights and some hundred per tensor: enough for a terabyte. */
const MAX_DESCRIPTION_BYTES = 32 << 20;
const WRITE_BYTES = 64 << 20;

const alignUp = (value: number, alignment: number): number => Math.ceil(value / alignment) * alignment;

/** Identifies an image: equal identities have equal bytes. */
function subjectOf({ images, sizeBytes, weights }: WeightRange, contentHash: string) {
  return { contentHash, layout: images.layout, endianness: endianness(), sizeBytes, weights };
}

/** The file name of a model's packed weights; starts with the model's hash. */
export function imageName(range: WeightRange, contentHash: string): string {
  const key = createHash('sha256')
    .update(JSON.stringify(subjectOf(range, contentHash)))
    .digest('hex');
  return `${contentHash.slice(0, 24)}-${key.slice(0, 32)}.bin`;
}

/** Size of an image file without its description. */
export function imageBytes({ images, sizeBytes }: WeightRange): number {
  return alignUp(sizeBytes, images.alignment) + images.alignment;
}

/** Writes an image; it becomes visible when it is complete and on disk. */
export function writeImage(path: string, range: WeightRange, contentHash: string): void {
  const { pack, images, offset, sizeBytes } = range;
  const checksums = Array.from(images.checksums(offset, sizeBytes), (sum) => sum.toString(16));
  const text = Buffer.from(JSON.stringify({ ...subjectOf(range, contentHash), checksums }));
  const header = Buffer.alloc(alignUp(PREAMBLE_BYTES + text.length, images.alignment));
  header.write(MAGIC, 'latin1');
  header.writeUInt32LE(text.length, 8);
  createHash('sha256').update(text).digest().copy(header, 12);
  text.copy(header, PREAMBLE_BYTES);
  const sink = createFileSink(path);
  try {
    sink.write(header);
    for (let at = 0; at < sizeBytes; at += WRITE_BYTES) {
      sink.write(pack.arena.u8(offset + at, Math.min(WRITE_BYTES, sizeBytes - at)));
    }
    sink.write(new Uint8Array(alignUp(sizeBytes, images.alignment) - sizeBytes));
    sink.commit();
  } finally {
    sink.abort();
  }
}

/** Reads an image into the range; false if it is not exactly this image. */
export function readImage(path: string, range: WeightRange, contentHash: string): boolean {
  const file = openSync(path, 'r');
  try {
    const { images, offset, sizeBytes } = range;
    const preamble = Buffer.alloc(PREAMBLE_BYTES);
    if (readSync(file, preamble, 0, PREAMBLE_BYTES, 0) !== PREAMBLE_BYTES) return false;
    const textBytes = preamble.readUInt32LE(8);
    if (preamble.toString('latin1', 0, 8) !== MAGIC || textBytes > MAX_DESCRIPTION_BYTES) return false;
    const dataStart = alignUp(PREAMBLE_BYTES + textBytes, images.alignment);
    // Reading mapped pages beyond the end of a file kills the process.
    if (fstatSync(file).size !== dataStart + alignUp(sizeBytes, images.alignment)) return false;
    const text = Buffer.alloc(textBytes);
    if (readSync(file, text, 0, textBytes, PREAMBLE_BYTES) !== textBytes) return false;
    if (!createHash('sha256').update(text).digest().equals(preamble.subarray(12))) return false;
    const { checksums, ...subject } = JSON.parse(text.toString()) as { checksums: string[] };
    if (JSON.stringify(subject) !== JSON.stringify(subjectOf(range, contentHash))) return false;
    const found = Array.from(images.restore(file, dataStart, offset, sizeBytes), (sum) => sum.toString(16));
    if (found.length === checksums.length && found.every((sum, i) => sum === checksums[i])) return true;
    images.clear(offset, sizeBytes);
    return false;
  } finally {
    closeSync(file);
  }
}
