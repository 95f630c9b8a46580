import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { RuvLLMError } from '../../../core/errors.ts';
import { createFileOnce, readWhole } from '../sealing/atomic-files.ts';
import { publicKeyText, signBytes } from './ed25519.ts';

const MAX_KEY_BYTES = 16 * 1024;

/** The Ed25519 private key in this file, made with its first use. */
export function openOwnKey(path: string) {
  let privateKey: KeyObject | null = null;

  function readKey(): KeyObject {
    if (privateKey !== null) return privateKey;
    if (!nodeFiles.existsSync(path)) {
      const pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' });
      createFileOnce(nodeFiles, path, new TextEncoder().encode(pem as string));
    }
    try {
      privateKey = createPrivateKey(Buffer.from(readWhole(nodeFiles, path, MAX_KEY_BYTES)!));
      publicKeyText(privateKey);
    } catch (cause) {
      privateKey = null;
      throw new RuvLLMError('io', `${path} is not an Ed25519 private key in PEM; restore it, or remove it to get another key`, { cause, data: { path } }); // prettier-ignore
    }
    return privateKey;
  }

  return {
    publicKey: (): string => publicKeyText(readKey()),
    sign: (bytes: Uint8Array): string => signBytes(readKey(), bytes),
  };
}
