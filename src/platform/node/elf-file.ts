import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Enough for the file header and more program headers than a linker writes. */
const HEAD_BYTES = 4096;
const LOADED = 1;
/** Fields of 64-bit little-endian ELF, by byte offset. */
const FILE_HEADER = {
  programAt: 32,
  sectionAt: 40,
  programSize: 54,
  numPrograms: 56,
  sectionSize: 58,
  numSections: 60,
};
const PROGRAM_HEADER = { type: 0, offset: 8, fileSize: 32 };

/**
 * How many bytes an ELF library says it has, or null where the bytes are no 64-bit little-endian ELF. The system's loader
 * maps a file that was cut off without complaint, and the process dies of a bus error when it touches what is not there.
 */
export function promisedElfBytes(head: Uint8Array): number | null {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const is64LittleEndian = head.length >= 64 && view.getUint32(0) === 0x7f454c46 && view.getUint16(4) === 0x0201;
  if (!is64LittleEndian) return null;
  const wide = (at: number): number => Number(view.getBigUint64(at, true));
  const short = (at: number): number => view.getUint16(at, true);
  const programSize = short(FILE_HEADER.programSize);
  let end = wide(FILE_HEADER.sectionAt) + short(FILE_HEADER.sectionSize) * short(FILE_HEADER.numSections);
  for (let i = 0; i < short(FILE_HEADER.numPrograms); i++) {
    const at = wide(FILE_HEADER.programAt) + i * programSize;
    if (at + PROGRAM_HEADER.fileSize + 8 > head.length) break;
    if (view.getUint32(at + PROGRAM_HEADER.type, true) !== LOADED) continue;
    end = Math.max(end, wide(at + PROGRAM_HEADER.offset) + wide(at + PROGRAM_HEADER.fileSize));
  }
  return end;
}

/** Why a library must not be loaded, or null. */
export function findElfFault(path: string): string | null {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const head = new Uint8Array(HEAD_BYTES);
    const promised = promisedElfBytes(head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0)));
    return promised === null || size >= promised ? null : `it has ${size} bytes, its header promises ${promised}`;
  } finally {
    closeSync(file);
  }
}
