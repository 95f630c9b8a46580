import * as fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseElf } from './elf-file.ts';

/** A header with program headers (type, offset, size) after it, and a section table at `sectionAt`. */
function elf(programs: readonly [number, number, number][], sectionAt: number, numSections: number): Uint8Array {
  const bytes = new Uint8Array(64 + programs.length * 56);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  view.setBigUint64(32, 64n, true);
  view.setBigUint64(40, BigInt(sectionAt), true);
  view.setUint16(54, 56, true);
  view.setUint16(56, programs.length, true);
  view.setUint16(58, 64, true);
  view.setUint16(60, numSections, true);
  programs.forEach(([type, offset, size], i) => {
    view.setUint32(64 + i * 56, type, true);
    view.setBigUint64(64 + i * 56 + 8, BigInt(offset), true);
    view.setBigUint64(64 + i * 56 + 32, BigInt(size), true);
  });
  return bytes;
}

test('the promised size ends with the last loaded segment or the section table, whichever is later', () => {
  expect(parseElf(elf([[1, 0, 500], [1, 4096, 904], [2, 9000, 900]], 0, 0))!.promisedBytes).toBe(5000); // prettier-ignore
  expect(parseElf(elf([[1, 0, 500]], 6000, 10))!.promisedBytes).toBe(6640);
  expect(parseElf(new TextEncoder().encode('#!/bin/sh\n'.repeat(20)))).toBeNull();
  expect(parseElf(new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2, 1]))).toBeNull();
});

test('a header with more program headers than were read is judged by those that were', () => {
  const bytes = elf([[1, 0, 500], [1, 4096, 904]], 0, 0); // prettier-ignore
  new DataView(bytes.buffer).setUint16(56, 0xffff, true);
  expect(parseElf(bytes)!.promisedBytes).toBe(5000);
});

test('a header of random bytes never throws', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 64, maxLength: 400 }), (bytes) => {
      bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
      parseElf(bytes);
    }),
  );
});

test.skipIf(process.platform !== 'linux')("Node's own file: architecture, loader and C library", () => {
  const file = parseElf(readFileSync(process.execPath))!;
  expect(file.architecture).toBe(process.arch);
  expect(file.interpreter).toMatch(/^\/.*ld-/);
  expect(file.needed.some((name) => name.startsWith('libc.'))).toBe(true);
});
