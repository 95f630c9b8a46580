import { randomFillSync } from 'node:crypto';
import type { TenantKeyRing, TenantSealer } from '../../../memory/store/sealer.ts';
import type { KeyFiles, TenantKeys } from '../sealing/key-files.ts';
import { createNaming, ID_LENGTH } from '../sealing/key-ring.ts';
import { frame, keyedName, NONCE_BYTES, seal, TAG_BYTES, unseal } from '../sealing/sealing.ts';

/** Cached names per tenant. */
const MAX_KEPT = 512;
const MAX_KEPT_CHARS = 200;

/** Format: nonce, sealed bytes, tag. With 2^32 records per key, the chance that a random nonce repeats is below 2^-32. */
export function createTenantSealer({ sealing, naming }: TenantKeys): TenantSealer {
  /** By purpose and text: most records have the same few words, and a keyed hash costs as much as sealing a record. */
  const names = new Map<string, string>();
  return {
    seal(associated, plain) {
      const sealed = new Uint8Array(NONCE_BYTES + plain.length + TAG_BYTES);
      const nonce = randomFillSync(sealed.subarray(0, NONCE_BYTES));
      const { bytes, tag } = seal(sealing, nonce, associated, plain);
      sealed.set(bytes, NONCE_BYTES);
      sealed.set(tag, NONCE_BYTES + plain.length);
      return sealed;
    },
    unseal(associated, sealed) {
      if (sealed.length < NONCE_BYTES + TAG_BYTES) return null;
      const end = sealed.length - TAG_BYTES;
      const parts = { bytes: sealed.subarray(NONCE_BYTES, end), tag: sealed.subarray(end) };
      return unseal(sealing, sealed.subarray(0, NONCE_BYTES), associated, parts);
    },
    nameOf(purpose, text) {
      const key = `${purpose}\n${text}`; // no purpose has a line break
      const known = names.get(key);
      if (known !== undefined) return known;
      const name = keyedName(naming, frame(purpose, text)).slice(0, ID_LENGTH);
      if (text.length > MAX_KEPT_CHARS) return name;
      if (names.size >= MAX_KEPT) names.clear();
      names.set(key, name);
      return name;
    },
  };
}

export function createTenantKeyRing(naming: Uint8Array, keyFiles: KeyFiles): TenantKeyRing {
  const nameOf = createNaming(naming);
  return {
    idOf: (tenant) => nameOf('tenant', tenant),
    obtain: (id) => createTenantSealer(keyFiles.obtain(id)),
    find(id) {
      const keys = keyFiles.find(id);
      return keys === null ? null : createTenantSealer(keys);
    },
    erase: (id) => keyFiles.erase(id),
  };
}
