import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Files } from './atomic-files.ts';
import { openKeyFiles, type TenantKeys } from './key-files.ts';
import { deriveKey, frame, keyedName } from './sealing.ts';

/** Hex digits of the names of tenants and models: 128 bits. */
export const ID_LENGTH = 32;

const SALT = Buffer.from('ruvllm sealed store 1');

/** A key for one purpose, from a secret that is never used itself. */
export function derivePurpose(secret: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(deriveKey(secret, SALT, frame(purpose)));
}

/** Shows that two have the same master key and says nothing about it. */
export function checkValueOf(masterKey: Uint8Array): string {
  return keyedName(derivePurpose(masterKey, 'recognise the master key'), frame('check'));
}

/** Names that say nothing without the secret. */
export function createNaming(secret: Uint8Array): (...texts: readonly string[]) => string {
  const naming = derivePurpose(secret, 'name tenants and models');
  return (...texts) => keyedName(naming, frame(...texts)).slice(0, ID_LENGTH);
}

/** One random key for each tenant, wrapped by the master key; to delete it is to erase all that was sealed with it. */
export interface KeyRing {
  /** Stands for the tenant in paths. */
  idOf(tenant: string): string;
  /** Stands for anything else that shall not be seen in paths, the same for all tenants. */
  nameOf(...texts: readonly string[]): string;
  /** Shows that two have the same master key and says nothing about it. */
  readonly checkValue: string;
  /** The keys as they are on the disk now, made when there are none. Throws `io` when there is one that does not open. */
  keysOf(tenant: string): TenantKeys;
  /** The same, or null when there are none. */
  findKeys(tenant: string): TenantKeys | null;
  /** Returns once the key is gone from the disk. */
  erase(tenant: string): void;
}

/** The keys of the tenants in `<folder>/keys`; needs no folder before the first key is made. */
export function openKeyRing(files: Files, folder: string, masterKey: Uint8Array): KeyRing {
  const nameOf = createNaming(masterKey);
  const idOf = (tenant: string): string => nameOf('tenant', tenant);
  const keys = openKeyFiles(files, folder, [derivePurpose(masterKey, 'wrap keys of tenants')]);
  return {
    idOf,
    nameOf,
    checkValue: checkValueOf(masterKey),
    findKeys: (tenant) => keys.find(idOf(tenant)),
    keysOf: (tenant) => keys.obtain(idOf(tenant)),
    erase: (tenant) => keys.erase(idOf(tenant)),
  };
}

export type { TenantKeys } from './key-files.ts';
