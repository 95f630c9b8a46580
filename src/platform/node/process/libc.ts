import { closeSync, openSync, readSync } from 'node:fs';
import { parseElf } from '../kernels/elf-file.ts';

export type Libc = 'glibc' | 'musl';

/** The C library a list of linked libraries, or a program's loader, belongs to; null where none is named. */
export function libcOf(names: readonly string[]): Libc | null {
  if (names.some((name) => /(?:^|\/)(?:ld-musl-|libc\.musl-|libc\.so$)/.test(name))) return 'musl';
  return names.some((name) => /(?:^|\/)(?:ld-linux|libc\.so\.6$)/.test(name)) ? 'glibc' : null;
}

let ownLibc: Libc | null | undefined;

/**
 * The C library of this process; null outside of Linux. From the loader that Node's own file names: process.report knows it too,
 * and takes far longer.
 */
export function readLibc(): Libc | null {
  if (process.platform !== 'linux') return null;
  if (ownLibc === undefined) ownLibc = readLibcOf(process.execPath) ?? 'glibc';
  return ownLibc;
}

function readLibcOf(program: string): Libc | null {
  const head = new Uint8Array(4096);
  const file = openSync(program, 'r');
  try {
    const interpreter = parseElf(head.subarray(0, readSync(file, head, 0, head.length, 0)))?.interpreter ?? null;
    return interpreter === null ? null : libcOf([interpreter]);
  } finally {
    closeSync(file);
  }
}
