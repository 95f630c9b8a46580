import { existsSync, readFileSync } from 'node:fs';
import { createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { deriveKey, frame, keyedName, seal, unseal } from './sealing.ts';

interface GcmGroup {
  readonly ivSize: number;
  readonly keySize: number;
  readonly tagSize: number;
  readonly tests: readonly Record<'key' | 'iv' | 'aad' | 'msg' | 'ct' | 'tag' | 'result', string>[];
}
interface HkdfGroup {
  readonly tests: readonly (Record<'ikm' | 'salt' | 'info' | 'okm' | 'result', string> & { readonly size: number })[];
}

const suite = (name: string): string =>
  fileURLToPath(new URL(`../../../../../shared/suites/wycheproof/${name}`, import.meta.url));
const isMissing = !existsSync(suite('aes_gcm_test.json')) || !existsSync(suite('hkdf_sha256_test.json'));
if (isMissing) console.log('shared/suites/wycheproof is not there: its vectors are skipped');
const read = (name: string): unknown => JSON.parse(readFileSync(suite(name), 'utf8'));
const hex = (text: string): Buffer => Buffer.from(text, 'hex');

describe.skipIf(isMissing)('published vectors', () => {
  test('[SP3] AES-256-GCM with nonces of 96 bits: what is valid opens and seals to the same bytes, the rest does not open', () => {
    const { testGroups } = read('aes_gcm_test.json') as { testGroups: GcmGroup[] };
    const counts = { valid: 0, invalid: 0 };
    for (const group of testGroups) {
      if (group.keySize !== 256 || group.ivSize !== 96 || group.tagSize !== 128) continue;
      for (const { key, iv, aad, msg, ct, tag, result } of group.tests) {
        const opened = unseal(hex(key), hex(iv), hex(aad), { bytes: hex(ct), tag: hex(tag) });
        if (result === 'valid') {
          expect(Buffer.from(opened!).toString('hex')).toBe(msg);
          const sealed = seal(hex(key), hex(iv), hex(aad), hex(msg));
          expect([sealed.bytes, sealed.tag].map((part) => Buffer.from(part).toString('hex'))).toEqual([ct, tag]);
          counts.valid++;
        } else {
          expect(opened).toBeNull();
          counts.invalid++;
        }
      }
    }
    expect(counts).toEqual({ valid: 39, invalid: 27 });
  });

  test('[SP2] HKDF with SHA-256', () => {
    const { testGroups } = read('hkdf_sha256_test.json') as { testGroups: HkdfGroup[] };
    const counts = { valid: 0, invalid: 0 };
    for (const { ikm, salt, info, size, okm, result } of testGroups.flatMap((group) => group.tests)) {
      const derive = (): string => Buffer.from(deriveKey(hex(ikm), hex(salt), hex(info), size)).toString('hex');
      if (result === 'valid') expect(derive()).toBe(okm);
      else expect(derive).toThrow();
      counts[result as 'valid' | 'invalid']++;
    }
    expect(counts).toEqual({ valid: 83, invalid: 3 });
  });
});

test('a tag that is cut short is refused', () => {
  const [key, nonce, none] = [new Uint8Array(32), new Uint8Array(12), new Uint8Array(0)];
  const { bytes, tag } = seal(key, nonce, none, new Uint8Array(5));
  expect(() => unseal(key, nonce, none, { bytes, tag: tag.subarray(0, 4) })).toThrow('authentication tag');
});

test('names are HMAC-SHA-256', () => {
  const key = Buffer.from('key');
  expect(keyedName(key, Buffer.from('message'))).toBe(createHmac('sha256', key).update('message').digest('hex'));
});

test('[SP2] frames of different texts differ', () => {
  const frames = [
    [],
    [''],
    ['', ''],
    ['ab', 'c'],
    ['a', 'bc'],
    ['abc'],
    ['a', 'b', 'c'],
    ['x'.repeat(256)],
    ['x'.repeat(257)],
  ];
  expect(new Set(frames.map((texts) => Buffer.from(frame(...texts)).toString('hex'))).size).toBe(frames.length);
  expect(() => frame('x'.repeat(1025))).toThrow('a name has 1025 bytes, at most 1024');
  expect(() => frame('\udc00')).toThrow('a name has 3 bytes, and is not valid Unicode');
});
