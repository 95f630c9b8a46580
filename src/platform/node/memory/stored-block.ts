import { createDecipheriv, type KeyObject } from 'node:crypto';
import { PAGE_BYTES } from '../../../memory/vector-index/dirty-pages.ts';
import type { Files } from '../sealing/atomic-files.ts';
import { NONCE_BYTES, TAG_BYTES } from '../sealing/sealing.ts';

export const CIPHER = 'aes-256-gcm';
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES;
/** A block in the file: nonce, tag, sealed bytes. */
export const STORED_BYTES = SEAL_BYTES + PAGE_BYTES;
/** `update` allocates each piece: larger ones are twice as slow, because their memory comes from the system. */
const PIECE_BYTES = 1 << 15;

/** Decrypts a block into `into`; false: damaged, and `into` is undefined. */
export function openBlock(
  key: KeyObject | Uint8Array,
  stored: Uint8Array,
  associated: Uint8Array,
  into: Uint8Array,
): boolean {
  const decipher = createDecipheriv(CIPHER, key, stored.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(associated);
  decipher.setAuthTag(stored.subarray(NONCE_BYTES, SEAL_BYTES));
  for (let at = 0; at < PAGE_BYTES; at += PIECE_BYTES) {
    const plain = decipher.update(stored.subarray(SEAL_BYTES + at, SEAL_BYTES + at + PIECE_BYTES));
    if (at < into.length) into.set(at + plain.length <= into.length ? plain : plain.subarray(0, into.length - at), at);
  }
  try {
    decipher.final();
    return true;
  } catch {
    return false;
  }
}

/** Returns the number of bytes read. */
export function readFully(files: Pick<Files, 'readSync'>, handle: number, into: Uint8Array, position: number): number {
  let length = 0;
  while (length < into.length) {
    const numRead = files.readSync(handle, into, length, into.length - length, position + length);
    if (numRead === 0) break;
    length += numRead;
  }
  return length;
}
