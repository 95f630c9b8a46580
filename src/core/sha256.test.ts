import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSha256, sha256, toHex } from './sha256.ts';

test('equals the digest of Node at any length, however the input is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 6 }), (parts) => {
      const hash = createSha256();
      for (const part of parts) hash.update(part);
      expect(toHex(hash.digest())).toBe(createHash('sha256').update(Buffer.concat(parts)).digest('hex'));
    }),
  );
});

test('equals the digest of Node around the length of a block', () => {
  for (let length = 0; length <= 130; length++) {
    const bytes = new Uint8Array(length).fill(length);
    expect(toHex(sha256(bytes))).toBe(createHash('sha256').update(bytes).digest('hex'));
  }
});
