import { readFileSync } from 'node:fs';
import { parseElf } from '../kernels/elf-file.ts';
import { type Libc, libcOf } from '../process/libc.ts';

/** Where a native library is to be loaded. */
export interface LibraryHost {
  readonly platform: string;
  readonly architecture: string;
  readonly libc: Libc | null;
}

/** What the first bytes of a native library say. */
interface LibraryKind {
  readonly format: 'ELF' | 'Mach-O' | 'PE';
  readonly architecture: string | null;
}

const FORMATS: Readonly<Record<string, LibraryKind['format']>> = { linux: 'ELF', darwin: 'Mach-O', win32: 'PE' };
const MACH_O_MACHINES: Readonly<Record<number, string>> = { 0x01000007: 'x64', 0x0100000c: 'arm64' };
const PE_MACHINES: Readonly<Record<number, string>> = { 0x8664: 'x64', 0xaa64: 'arm64', 0x14c: 'ia32' };

function readKind(bytes: Uint8Array): LibraryKind | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elf = parseElf(bytes);
  if (elf !== null) return { format: 'ELF', architecture: elf.architecture };
  if (bytes.length < 64) return null;
  if (view.getUint32(0, true) === 0xfeedfacf) {
    return { format: 'Mach-O', architecture: MACH_O_MACHINES[view.getUint32(4, true)] ?? null };
  }
  if (view.getUint32(0) === 0xcafebabe) return { format: 'Mach-O', architecture: null };
  const headerAt = view.getUint32(60, true);
  const isPe = view.getUint16(0) === 0x4d5a && headerAt + 6 <= bytes.length && view.getUint32(headerAt) === 0x50450000;
  return isPe ? { format: 'PE', architecture: PE_MACHINES[view.getUint16(headerAt + 4, true)] ?? null } : null;
}

/**
 * Why a library must not be loaded here, or null. Most faults would only make the loader throw, in words that do not help. A file
 * that was cut off is worse: the loader maps it, and the process dies of a bus error when it touches a page that is not there.
 * One of another C library brings a second C library into the process.
 */
export function findLibraryFault(path: string, host: LibraryHost): string | null {
  const bytes = readFileSync(path);
  if (bytes.length === 0) return 'the file is empty';
  const kind = readKind(bytes);
  if (kind === null) return 'the file is no native library';
  const isHere = kind.format === (FORMATS[host.platform] ?? kind.format);
  if (!isHere || (kind.architecture !== null && kind.architecture !== host.architecture)) {
    return `it is ${kind.format === 'ELF' ? 'an' : 'a'} ${kind.format} library for ${kind.architecture ?? 'another processor'}, and this is ${host.platform}-${host.architecture}`;
  }
  const elf = parseElf(bytes);
  if (elf === null) return null;
  if (bytes.length < elf.promisedBytes) {
    return `it has ${bytes.length} bytes, its header promises ${elf.promisedBytes}`;
  }
  const libc = libcOf(elf.needed);
  return libc === null || host.libc === null || libc === host.libc
    ? null
    : `it is linked against ${libc}, and this system has ${host.libc}`;
}
