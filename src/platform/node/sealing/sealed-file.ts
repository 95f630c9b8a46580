import { randomFillSync, type KeyObject } from 'node:crypto';
import { NONCE_BYTES, seal, TAG_BYTES, unseal } from './sealing.ts';

/** What a file holds, by its first four bytes. */
const MAGICS = { page: 'RVPG', key: 'RVKY', record: 'RVRC', secrets: 'RVSC' } as const;
const VERSION = 1;

/**
 * | offset | bytes |                                                      |
 * | ------ | ----- | ---------------------------------------------------- |
 * | 0      | 4     | magic                                                |
 * | 4      | 2     | version, little-endian                               |
 * | 6      | 1     | variant: what the owner of the format likes to know  |
 * | 7      | 1     | 0                                                    |
 * | 8      | 4     | length of the content, little-endian                 |
 * | 12     | 12    | nonce                                                |
 * | 24     | …     | content, sealed                                      |
 * | end    | 16    | tag: also the checksum                               |
 */
const CHECKED_HEADER_BYTES = 12;
const HEADER_BYTES = CHECKED_HEADER_BYTES + NONCE_BYTES;

/** What a file has more than its content. */
export const OVERHEAD_BYTES = HEADER_BYTES + TAG_BYTES;

export interface SealedFileKind {
  readonly kind: keyof typeof MAGICS;
  readonly key: KeyObject | Uint8Array;
  /** Where the file belongs: it does not open under another name. */
  readonly name: string;
}

function createHeader(kind: keyof typeof MAGICS, variant: number, sizeBytes: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGICS[kind], 0, 'latin1');
  header.writeUInt16LE(VERSION, 4);
  header.writeUInt8(variant, 6);
  header.writeUInt32LE(sizeBytes, 8);
  return header;
}

function associatedData(header: Uint8Array, name: string): Uint8Array {
  const data = Buffer.allocUnsafe(CHECKED_HEADER_BYTES + Buffer.byteLength(name));
  data.set(header.subarray(0, CHECKED_HEADER_BYTES));
  data.write(name, CHECKED_HEADER_BYTES);
  return data;
}

/**
 * The parts of a file, in order. The nonce is random: 2^32 files under one key keep the chance of a repetition below 2^-32, and
 * that many pages are more than any disk takes.
 */
export function sealFile({ kind, key, name }: SealedFileKind, variant: number, plain: Uint8Array): Uint8Array[] {
  const header = createHeader(kind, variant, plain.length);
  const nonce = randomFillSync(header.subarray(CHECKED_HEADER_BYTES));
  const { bytes, tag } = seal(key, nonce, associatedData(header, name), plain);
  return [header, bytes, tag];
}

/** The content of a file, or null for whatever `sealFile` has not made with this kind, key and name. */
export function openFile(
  { kind, key, name }: SealedFileKind,
  file: Uint8Array,
): { readonly variant: number; readonly bytes: Uint8Array } | null {
  if (file.length < OVERHEAD_BYTES) return null;
  const variant = file[6]!;
  const header = file.subarray(0, HEADER_BYTES);
  const expected = createHeader(kind, variant, file.length - OVERHEAD_BYTES);
  if (!expected.subarray(0, CHECKED_HEADER_BYTES).equals(header.subarray(0, CHECKED_HEADER_BYTES))) return null;
  const bytes = unseal(key, header.subarray(CHECKED_HEADER_BYTES), associatedData(header, name), {
    bytes: file.subarray(HEADER_BYTES, file.length - TAG_BYTES),
    tag: file.subarray(file.length - TAG_BYTES),
  });
  return bytes === null ? null : { variant, bytes };
}
