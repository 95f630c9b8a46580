import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { RuvLLMError } from '../../../core/errors.ts';

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** Why a text is not so many bytes in base64; null: it is. */
function findProblem(value: unknown, numBytes: number): string | null {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'base64') : null;
  if (bytes !== null && bytes.length === numBytes && bytes.toString('base64') === value) return null;
  return `must be ${numBytes} bytes in base64, got ${bytes?.length ?? typeof value}`;
}

export const findKeyProblem = (value: unknown): string | null => findProblem(value, KEY_BYTES);
export const findSignatureProblem = (value: unknown): string | null => findProblem(value, SIGNATURE_BYTES);

/** An Ed25519 public key in base64, as signatures and trust lists name it. */
export function readPublicKey(text: string): string {
  const problem = findKeyProblem(text);
  if (problem !== null) throw new RuvLLMError('invalid_option', `a public key ${problem}`, { data: { option: 'key' } });
  return text;
}

function requireEd25519(key: KeyObject): void {
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new RuvLLMError('invalid_option', `signatures require an Ed25519 key, the key is ${key.asymmetricKeyType}`);
  }
}

/** The public half of a private key, in base64. */
export function publicKeyText(privateKey: KeyObject): string {
  requireEd25519(privateKey);
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  return Buffer.from(x!, 'base64url').toString('base64');
}

/** A signature in base64. */
export function signBytes(privateKey: KeyObject, bytes: Uint8Array): string {
  requireEd25519(privateKey);
  return sign(null, bytes, privateKey).toString('base64');
}

/** Whether the holder of `key` signed these bytes; false for anything that is no key or no signature. */
export function isSignedBy(key: string, bytes: Uint8Array, signature: string): boolean {
  if (findKeyProblem(key) !== null || findSignatureProblem(signature) !== null) return false;
  try {
    const x = Buffer.from(key, 'base64').toString('base64url');
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return verify(null, bytes, publicKey, Buffer.from(signature, 'base64'));
  } catch {
    return false; // not a point of the curve
  }
}
