import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findElfFault, promisedElfBytes } from './elf-file.ts';

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

test('the end of the last loaded segment or of the section table, whichever is later', () => {
  expect(promisedElfBytes(elf([[1, 0, 500], [1, 4096, 904], [2, 9000, 900]], 0, 0))).toBe(5000); // prettier-ignore
  expect(promisedElfBytes(elf([[1, 0, 500]], 6000, 10))).toBe(6640);
  expect(promisedElfBytes(new TextEncoder().encode('#!/bin/sh\n'.repeat(20)))).toBeNull();
  expect(promisedElfBytes(new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2, 1]))).toBeNull();
});

test('a header with more program headers than were read is judged by those that were', () => {
  const bytes = elf([[1, 0, 500], [1, 4096, 904]], 0, 0); // prettier-ignore
  new DataView(bytes.buffer).setUint16(56, 0xffff, true);
  expect(promisedElfBytes(bytes)).toBe(5000);
});

test('a file that ends before what it promises', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-elf-'));
  try {
    const file = join(folder, 'cut.node');
    writeFileSync(file, elf([[1, 0, 500]], 0, 0));
    expect(findElfFault(file)).toBe('it has 120 bytes, its header promises 500');
    writeFileSync(file, Buffer.concat([elf([[1, 0, 500]], 0, 0), new Uint8Array(380)]));
    expect(findElfFault(file)).toBeNull();
  } finally {
    rmSync(folder, { recursive: true });
  }
  if (process.platform === 'linux') expect(findElfFault(process.execPath)).toBeNull();
});
