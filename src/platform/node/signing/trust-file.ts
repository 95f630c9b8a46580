import * as nodeFiles from 'node:fs';
import { RuvLLMError } from '../../../core/errors.ts';
import { readWhole, replaceFile } from '../sealing/atomic-files.ts';
import { readPublicKey } from './ed25519.ts';

export interface TrustedKey {
  /** Ed25519, in base64. */
  readonly key: string;
  readonly name: string;
}

const MAX_BYTES = 1 << 20;

/** Throws for anything else than a named key. */
export function checkTrustedKey({ key, name }: TrustedKey): void {
  if (readPublicKey(key) !== key || typeof name !== 'string') throw new Error('a key');
}

/** Trusts nobody if there is no file; a damaged one is an error, because a removed key must not come back. */
export function readTrustFile<T>(
  path: string,
  { empty, parse, consequence }: { readonly empty: T; parse(value: unknown): T; readonly consequence: string },
): T {
  if (!nodeFiles.existsSync(path)) return empty;
  const bytes = readWhole(nodeFiles, path, MAX_BYTES);
  try {
    return parse(JSON.parse(new TextDecoder().decode(bytes!)));
  } catch (cause) {
    throw new RuvLLMError('invalid_option', `${path} is damaged; ${consequence} until it is fixed or removed`, {
      cause,
      data: { path },
    });
  }
}

export function writeTrustFile(path: string, value: object): void {
  const text = `${JSON.stringify(value, null, 2)}\n`;
  replaceFile(nodeFiles, path, [new TextEncoder().encode(text)], true);
}
