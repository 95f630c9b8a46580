import { join } from 'node:path';
import { dataFolder } from '../../files/paths.ts';
import { checkTrustedKey, readTrustFile, type TrustedKey, writeTrustFile } from '../../signing/trust-file.ts';

export interface AllowedPack {
  readonly name: string;
  readonly folder: string;
  /** SHA-256 of the manifest: another version must be allowed again. */
  readonly manifestHash: string;
}

/** Whose kernel packs may run here, and which. */
export interface PackTrust {
  readonly keys: readonly TrustedKey[];
  readonly packs: readonly AllowedPack[];
}

/** Kept with API keys: who can write to that folder can run code as this user anyway. */
export const defaultTrustPath = (): string => join(dataFolder(), 'kernels', 'trust.json');

function parse(value: unknown): PackTrust {
  const { keys, packs } = value as PackTrust;
  keys.forEach(checkTrustedKey);
  for (const { name, folder, manifestHash } of packs) {
    if (![name, folder, manifestHash].every((text) => typeof text === 'string')) throw new Error('a pack');
  }
  return { keys, packs };
}

export const readTrust = (path = defaultTrustPath()): PackTrust =>
  readTrustFile(path, { empty: { keys: [], packs: [] }, parse, consequence: 'no kernel pack is trusted' });

export const writeTrust = ({ keys, packs }: PackTrust, path = defaultTrustPath()): void =>
  writeTrustFile(path, { keys, packs });
