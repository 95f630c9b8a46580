import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { dataFolder } from '../files/paths.ts';
import { createFileOnce, readWhole } from '../sealing/atomic-files.ts';
import { isSignedBy, publicKeyText, readPublicKey, signBytes } from '../signing/ed25519.ts';
import { checkTrustedKey, readTrustFile, type TrustedKey, writeTrustFile } from '../signing/trust-file.ts';

interface TenantPeer extends TrustedKey {
  readonly tenant: string;
}

const MAX_KEY_BYTES = 16 * 1024;

export const federationFolder = (): string => join(dataFolder(), 'federation');

function parsePeers(value: unknown): readonly TenantPeer[] {
  const { peers } = value as { peers: readonly TenantPeer[] };
  for (const peer of peers) {
    checkTrustedKey(peer);
    if (typeof peer.tenant !== 'string') throw new Error('a tenant');
  }
  return peers;
}

/** The key of this node, made with its first use, and the peers of each tenant. Another list than that of kernel packs, whose keys may run code. */
export function openNodeIdentity(folder = federationFolder()) {
  const keyPath = join(folder, 'node-key.pem');
  const trustPath = join(folder, 'peers.json');
  let privateKey: KeyObject | null = null;

  function readKey(): KeyObject {
    if (privateKey !== null) return privateKey;
    if (!nodeFiles.existsSync(keyPath)) {
      const pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' });
      createFileOnce(nodeFiles, keyPath, new TextEncoder().encode(pem as string));
    }
    try {
      privateKey = createPrivateKey(Buffer.from(readWhole(nodeFiles, keyPath, MAX_KEY_BYTES)!));
      publicKeyText(privateKey);
    } catch (cause) {
      privateKey = null;
      throw new RuvLLMError('io', `${keyPath} is not an Ed25519 private key in PEM; restore it, or remove it to get another key`, { cause, data: { path: keyPath } }); // prettier-ignore
    }
    return privateKey;
  }

  const readAll = (): readonly TenantPeer[] =>
    readTrustFile(trustPath, { empty: [], parse: parsePeers, consequence: 'no peer is trusted' });

  return {
    signer: {
      publicKey: () => publicKeyText(readKey()),
      sign: (bytes: Uint8Array) => signBytes(readKey(), bytes),
      isSignedBy,
    },
    trust: {
      list: (tenant: string): readonly TrustedKey[] =>
        readAll().flatMap(({ key, name, tenant: owner }) => (owner === tenant ? [{ key, name }] : [])),
      add(tenant: string, { key, name }: TrustedKey): void {
        const peer = { key: readPublicKey(key), name, tenant };
        const others = readAll().filter((one) => one.key !== key || one.tenant !== tenant);
        writeTrustFile(trustPath, { peers: [...others, peer] });
      },
      remove(tenant: string, key: string): void {
        writeTrustFile(trustPath, { peers: readAll().filter((one) => one.key !== key || one.tenant !== tenant) });
      },
    },
  };
}
