import { expect, test } from 'vitest';
import { openFile, OVERHEAD_BYTES, sealFile, type SealedFileKind } from './sealed-file.ts';

const KIND: SealedFileKind = { kind: 'page', key: new Uint8Array(32).fill(1), name: 'name' };
const PLAIN = Uint8Array.from({ length: 100 }, (_, i) => i);
const sealed = (): Buffer => Buffer.concat(sealFile(KIND, 1, PLAIN));

test('[SP1] a sealed file opens to what it was made of', () => {
  expect(openFile(KIND, sealed())).toEqual({ variant: 1, bytes: Buffer.from(PLAIN) });
  expect(sealed()).toHaveLength(PLAIN.length + OVERHEAD_BYTES);
  expect(openFile(KIND, Buffer.concat(sealFile(KIND, 0, new Uint8Array(0))))).toEqual({
    variant: 0,
    bytes: Buffer.alloc(0),
  });
});

test('[SP4] the same content is sealed differently each time', () => {
  expect(sealed().equals(sealed())).toBe(false);
});

test('[SP3] every single flipped bit is found', () => {
  const file = sealed();
  for (let bit = 0; bit < file.length * 8; bit++) {
    const damaged = Buffer.from(file);
    damaged[bit >> 3]! ^= 1 << (bit & 7);
    if (openFile(KIND, damaged) !== null) expect.fail(`bit ${bit & 7} of byte ${bit >> 3} makes no difference`);
  }
});

test('[SP3] every other length is found', () => {
  const file = sealed();
  for (let length = 0; length < file.length; length++) expect(openFile(KIND, file.subarray(0, length))).toBeNull();
  expect(openFile(KIND, Buffer.concat([file, Buffer.alloc(1)]))).toBeNull();
});

test.each([{ kind: 'record' as const }, { key: new Uint8Array(32).fill(2) }, { name: 'nam' }, { name: 'other' }])(
  '[SP3] a file does not open as %j',
  (other) => {
    expect(openFile({ ...KIND, ...other }, sealed())).toBeNull();
  },
);
