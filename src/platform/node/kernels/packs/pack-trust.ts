import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../../../core/errors.ts';
import { dataFolder } from '../../files/paths.ts';
import { readWhole, replaceFile } from '../../sealing/atomic-files.ts';
import { readPublicKey } from './pack-manifest.ts';

export interface TrustedKey {
  /** Ed25519, in base64. */
  readonly key: string;
  readonly name: string;
}

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

const MAX_BYTES = 1 << 20;

/** Kept with API keys: who can write to that folder can run code as this user anyway. */
export const defaultTrustPath = (): string => join(dataFolder(), 'kernels', 'trust.json');

/** Trusts nobody if there is no file; a damaged one is an error, because a key that was removed must not come back. */
export function readTrust(path = defaultTrustPath()): PackTrust {
  if (!nodeFiles.existsSync(path)) return { keys: [], packs: [] };
  const bytes = readWhole(nodeFiles, path, MAX_BYTES);
  try {
    const { keys, packs } = JSON.parse(new TextDecoder().decode(bytes!)) as PackTrust;
    for (const { key, name } of keys) if (readPublicKey(key) !== key || typeof name !== 'string') throw new Error(name);
    for (const { name, folder, manifestHash } of packs) {
      if (![name, folder, manifestHash].every((text) => typeof text === 'string')) throw new Error('a pack');
    }
    return { keys, packs };
  } catch (cause) {
    throw new RuvLLMError(
      'invalid_option',
      `${path} is damaged; no kernel pack is trusted until it is fixed or removed`,
      {
        cause,
        data: { path },
      },
    );
  }
}

export function writeTrust({ keys, packs }: PackTrust, path = defaultTrustPath()): void {
  const text = `${JSON.stringify({ keys, packs }, null, 2)}\n`;
  replaceFile(nodeFiles, path, [new TextEncoder().encode(text)], true);
}
