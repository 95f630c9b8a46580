import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openNodeIdentity } from './node-identity.ts';

let folder = '';
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'ruvllm-identity-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('[FD1] makes a key once, for this user alone, and signs with it after a restart', () => {
  const { signer } = openNodeIdentity(join(folder, 'a'));
  const again = openNodeIdentity(join(folder, 'a')).signer;
  const key = signer.publicKey();
  expect(again.publicKey()).toBe(key);
  if (process.platform !== 'win32') expect(statSync(join(folder, 'a', 'node-key.pem')).mode & 0o777).toBe(0o600);
  const bytes = new TextEncoder().encode('a bundle');
  expect(again.isSignedBy(key, bytes, signer.sign(bytes))).toBe(true);
  expect(again.isSignedBy(key, new TextEncoder().encode('another'), signer.sign(bytes))).toBe(false);
  const other = openNodeIdentity(join(folder, 'b')).signer;
  expect(other.publicKey()).not.toBe(key);
  expect(signer.isSignedBy(other.publicKey(), bytes, signer.sign(bytes))).toBe(false);
  expect(signer.isSignedBy('x', bytes, 'y')).toBe(false);
});

test('[FD5] keeps the peers of each tenant apart, and after a restart', () => {
  const { trust, signer } = openNodeIdentity(folder);
  const key = signer.publicKey();
  expect(trust.list('acme')).toEqual([]);
  trust.add('acme', { key, name: 'first' });
  trust.add('acme', { key, name: 'renamed' });
  trust.add('bob', { key, name: 'his' });
  expect(() => trust.add('acme', { key: 'short', name: 'x' })).toThrow(/must be 32 bytes in base64/);
  trust.remove('bob', key);
  const again = openNodeIdentity(folder).trust;
  expect([again.list('acme'), again.list('bob')]).toEqual([[{ key, name: 'renamed' }], []]);
});

test('reports a damaged key or list instead of making another one', () => {
  const { trust, signer } = openNodeIdentity(folder);
  trust.add('acme', { key: signer.publicKey(), name: 'a' });
  for (const damaged of ['{', '{"peers":[{"key":"x","name":"a","tenant":"acme"}]}', '{"peers":[{}]}']) {
    writeFileSync(join(folder, 'peers.json'), damaged);
    expect(() => trust.list('acme')).toThrow(/damaged; no peer is trusted/);
  }
  writeFileSync(join(folder, 'node-key.pem'), 'not a key');
  expect(() => openNodeIdentity(folder).signer.publicKey()).toThrow(/is not an Ed25519 private key/);
  expect(readFileSync(join(folder, 'node-key.pem'), 'utf8')).toBe('not a key');
});
