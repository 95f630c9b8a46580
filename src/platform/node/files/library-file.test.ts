import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { libcOf, readLibc } from '../process/libc.ts';
import { findLibraryFault, type LibraryHost } from './library-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-library-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const LINUX: LibraryHost = { platform: 'linux', architecture: 'x64', libc: 'glibc' };
const faultOf = (bytes: Uint8Array, host = LINUX): string | null => {
  const path = join(folder, 'x.node');
  writeFileSync(path, bytes);
  return findLibraryFault(path, host);
};

/** An ELF library of 512 bytes that is linked against `needed`: one segment, its dynamic table at 256, its names at 384. */
function elf(machine: number, needed = 'libc.so.6'): Uint8Array {
  const bytes = new Uint8Array(512);
  const view = new DataView(bytes.buffer);
  const setWords = (at: number, ...words: number[]): void =>
    words.forEach((word, i) => view.setBigUint64(at + i * 8, BigInt(word), true));
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  view.setUint16(18, machine, true);
  setWords(32, 64);
  view.setUint16(54, 56, true);
  view.setUint16(56, 2, true);
  for (const [i, [type, offset, size]] of [
    [1, 0, 512],
    [2, 256, 48],
  ].entries()) {
    // prettier-ignore
    view.setUint32(64 + i * 56, type!, true);
    setWords(64 + i * 56 + 8, offset!, 0x1000 + offset!, 0, size!, size!);
  }
  setWords(256, 1, 1, 5, 0x1000 + 384, 0, 0);
  bytes.set(new TextEncoder().encode(needed), 385);
  return bytes;
}

function machO(machine: number): Uint8Array {
  const bytes = new Uint8Array(128);
  new DataView(bytes.buffer).setUint32(0, 0xfeedfacf, true);
  new DataView(bytes.buffer).setUint32(4, machine, true);
  return bytes;
}

function pe(machine: number): Uint8Array {
  const bytes = new Uint8Array(128);
  const view = new DataView(bytes.buffer);
  bytes.set([0x4d, 0x5a]);
  view.setUint32(60, 80, true);
  bytes.set([0x50, 0x45, 0, 0], 80);
  view.setUint16(84, machine, true);
  return bytes;
}

test.each<[string, Uint8Array, string | null]>([
  ['ours', elf(62), null],
  ['a static one', elf(62, 'libm.so.6'), null],
  ['an empty file', new Uint8Array(0), 'the file is empty'],
  ['random bytes', Buffer.from('not an addon'.repeat(20)), 'the file is no native library'],
  ['a few bytes', Buffer.from('\x7fELF'), 'the file is no native library'],
  ['another architecture', elf(183), 'it is an ELF library for arm64, and this is linux-x64'],
  ['an unknown architecture', machO(5), 'it is a Mach-O library for another processor, and this is linux-x64'],
  ['macOS', machO(0x01000007), 'it is a Mach-O library for x64, and this is linux-x64'],
  ['Windows', pe(0x8664), 'it is a PE library for x64, and this is linux-x64'],
  ['cut off', elf(62).subarray(0, 500), 'it has 500 bytes, its header promises 512'],
  ['another C library', elf(62, 'libc.musl-x86_64.so.1'), 'it is linked against musl, and this system has glibc'],
])('%s', (_, bytes, fault) => {
  expect(faultOf(bytes)).toBe(fault);
});

test('each platform takes its own format', () => {
  const mac: LibraryHost = { platform: 'darwin', architecture: 'arm64', libc: null };
  const windows: LibraryHost = { platform: 'win32', architecture: 'x64', libc: null };
  expect([faultOf(machO(0x0100000c), mac), faultOf(pe(0x8664), windows)]).toEqual([null, null]);
  expect(faultOf(elf(62), windows)).toBe('it is an ELF library for x64, and this is win32-x64');
  expect(faultOf(elf(62, 'libc.so'), { ...LINUX, libc: 'musl' })).toBeNull();
});

test('C libraries by the names of their files', () => {
  expect(['/lib64/ld-linux-x86-64.so.2', 'libc.so.6'].map((name) => libcOf([name]))).toEqual(['glibc', 'glibc']);
  const musl = ['/lib/ld-musl-aarch64.so.1', 'libc.musl-x86_64.so.1', 'libc.so'];
  expect(musl.map((name) => libcOf([name]))).toEqual(['musl', 'musl', 'musl']);
  expect(libcOf(['libm.so.6', 'libpthread.so.0'])).toBeNull();
});

test.skipIf(process.platform !== 'linux')("this process's C library is the one its report names", () => {
  const { header } = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  expect(readLibc()).toBe(header.glibcVersionRuntime === undefined ? 'musl' : 'glibc');
  const host = { platform: 'linux', architecture: process.arch, libc: readLibc() };
  expect(faultOf(readFileSync(process.execPath).subarray(0, 8192), host)).toMatch(/^it has 8192 bytes, its header/);
});
