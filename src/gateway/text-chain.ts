import { createSha256, sha256, toHex } from '../core/sha256.ts';

/** Bytes of text per hash: about two pages of tokens. A shorter block costs a hash, a longer one precision. */
export const TEXT_BLOCK_BYTES = 128;

/** Texts beyond are not compared: 256 KiB. */
const MAX_TEXT_BLOCKS = 2048;

const HASH_BYTES = 8;

/**
 * One chained hash per whole block of a text: hash i covers all bytes up to the end of block i. Two texts of the same tenant and model
 * share as many hashes as they share blocks; texts of two tenants share none.
 */
export function hashText(
  salt: string,
  owner: { readonly tenant: string; readonly model: string | null },
  bytes: Uint8Array,
): readonly string[] {
  const hashes: string[] = [];
  let parent = sha256(new TextEncoder().encode(JSON.stringify([salt, owner.tenant, owner.model])));
  const count = Math.min(MAX_TEXT_BLOCKS, Math.floor(bytes.length / TEXT_BLOCK_BYTES));
  for (let i = 0; i < count; i++) {
    const hash = createSha256();
    hash.update(parent);
    hash.update(bytes.subarray(i * TEXT_BLOCK_BYTES, (i + 1) * TEXT_BLOCK_BYTES));
    parent = hash.digest();
    hashes.push(toHex(parent.subarray(0, HASH_BYTES)));
  }
  return hashes;
}
