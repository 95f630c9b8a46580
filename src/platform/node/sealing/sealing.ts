import { createCipheriv, createDecipheriv, createHmac, hkdfSync, type KeyObject } from 'node:crypto';
import { RuvLLMError } from '../../../core/errors.ts';

export const KEY_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

const CIPHER = 'aes-256-gcm';
/** Of a name that comes from outside: the same bound as for the fields of a cache namespace. */
const MAX_TEXT_BYTES = 1024;

type Key = KeyObject | Uint8Array;

export interface Sealed {
  readonly bytes: Uint8Array;
  readonly tag: Uint8Array;
}

/** AES-256-GCM. The nonce must never be used twice with one key. */
export function seal(key: Key, nonce: Uint8Array, associated: Uint8Array, plain: Uint8Array): Sealed {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associated);
  const bytes = cipher.update(plain);
  cipher.final(); // empty: GCM has no padding
  return { bytes, tag: cipher.getAuthTag() };
}

/** What was sealed, or null when anything of key, nonce, associated data, bytes or tag is not as it was. */
export function unseal(key: Key, nonce: Uint8Array, associated: Uint8Array, sealed: Sealed): Uint8Array | null {
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated);
  decipher.setAuthTag(sealed.tag);
  const plain = decipher.update(sealed.bytes);
  try {
    decipher.final();
  } catch {
    return null;
  }
  return plain;
}

/** HKDF with SHA-256 (RFC 5869). */
export function deriveKey(secret: Key, salt: Uint8Array, info: Uint8Array, sizeBytes = KEY_BYTES): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, salt, info, sizeBytes));
}

/** HMAC-SHA-256, in hex. */
export function keyedName(key: Key, message: Uint8Array): string {
  return createHmac('sha256', key).update(message).digest('hex');
}

/**
 * Texts as bytes, each with its length in front: nothing else tells ["ab", "c"] from ["a", "bc"]. Half a surrogate pair is
 * refused, since UTF-8 makes the same three bytes of all of them: two tenants would become one.
 */
export function frame(...texts: readonly string[]): Uint8Array {
  const parts = texts.flatMap((text) => {
    const bytes = Buffer.from(text, 'utf8');
    if (bytes.length > MAX_TEXT_BYTES || !text.isWellFormed()) {
      const reason = bytes.length > MAX_TEXT_BYTES ? `at most ${MAX_TEXT_BYTES}` : 'and is not valid Unicode';
      throw new RuvLLMError('invalid_option', `a name has ${bytes.length} bytes, ${reason}`, {
        data: { sizeBytes: bytes.length, limitBytes: MAX_TEXT_BYTES },
      });
    }
    return [Buffer.from([bytes.length & 0xff, bytes.length >> 8]), bytes];
  });
  return Buffer.concat(parts);
}
