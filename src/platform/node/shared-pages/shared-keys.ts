import { createSecretKey, type KeyObject } from 'node:crypto';
import { createNaming } from '../sealing/key-ring.ts';
import { deriveKey, frame } from '../sealing/sealing.ts';

/** Keys that every node of a fleet derives alike: a tenant's pages have names and seals that other tenants cannot compute. */
export interface SharedKeys {
  /** `v1/<tenant>/`: all pages of a tenant are below. */
  folderOf(tenant: string): string;
  /** `<folder><model>/`. */
  folderOfModel(tenant: string, modelHash: string): string;
  tenantKeys(tenant: string): { readonly naming: KeyObject; readonly sealing: KeyObject };
}

const SALT = Buffer.from('ruvllm shared pages 1');

export function openSharedKeys(masterKey: Uint8Array): SharedKeys {
  const nameOf = createNaming(masterKey);
  const derive = (purpose: string, tenant: string): KeyObject =>
    createSecretKey(deriveKey(masterKey, SALT, frame(purpose, tenant)));
  const folderOf = (tenant: string): string => `v1/${nameOf('tenant', tenant)}/`;
  return {
    folderOf,
    folderOfModel: (tenant, modelHash) => `${folderOf(tenant)}${nameOf('model', modelHash)}/`,
    tenantKeys: (tenant) => ({ naming: derive('name pages', tenant), sealing: derive('seal pages', tenant) }),
  };
}
