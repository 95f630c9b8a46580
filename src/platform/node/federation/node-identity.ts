import { join } from 'node:path';
import { dataFolder } from '../files/paths.ts';
import { isSignedBy, readPublicKey } from '../signing/ed25519.ts';
import { openOwnKey } from '../signing/own-key.ts';
import { checkTrustedKey, readTrustFile, type TrustedKey, writeTrustFile } from '../signing/trust-file.ts';

interface TenantPeer extends TrustedKey {
  readonly tenant: string;
}

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
  const ownKey = openOwnKey(keyPath);

  const readAll = (): readonly TenantPeer[] =>
    readTrustFile(trustPath, { empty: [], parse: parsePeers, consequence: 'no peer is trusted' });

  return {
    signer: {
      ...ownKey,
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
