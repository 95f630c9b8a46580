import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { prepareHmacKey, signHmac } from './hmac-sha256.ts';

const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

test('[K1] matches the first two cases of RFC 4231', () => {
  expect(signHmac(prepareHmacKey(bytesOf('0b'.repeat(20))), new TextEncoder().encode('Hi There'))).toBe(
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  );
  const key = prepareHmacKey(new TextEncoder().encode('Jefe'));
  expect(signHmac(key, new TextEncoder().encode('what do ya want for nothing?'))).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
});

test('[K1] matches WebCrypto for any key of 1 to 64 bytes and any text', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1, maxLength: 64 }),
      fc.uint8Array({ maxLength: 300 }),
      async (key, text) => {
        const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
        const digest = Buffer.from(await crypto.subtle.sign('HMAC', imported, text)).toString('hex');
        expect(signHmac(prepareHmacKey(key), text)).toBe(digest);
      },
    ),
    { numRuns: 200 },
  );
});

test('rejects a key longer than a block', () => {
  expect(() => prepareHmacKey(new Uint8Array(65))).toThrow('65 bytes');
});
