/** Seals and names what belongs to one tenant. */
export interface TenantSealer {
  /** Opens again only with the same associated data. */
  seal(associated: Uint8Array, plain: Uint8Array): Uint8Array;
  /** Null when anything is not as it was. */
  unseal(associated: Uint8Array, sealed: Uint8Array): Uint8Array | null;
  /** 32 hex digits that say nothing without the tenant's key; the same for the same texts. */
  nameOf(purpose: string, text: string): string;
}

/** The keys of all tenants by their ids: one each, and to erase it is to forget all that was sealed with it. */
export interface TenantKeyRing {
  /** Stands for the tenant wherever it can be seen. */
  idOf(tenant: string): string;
  /** Made when there is none. */
  obtain(tenantId: string): TenantSealer;
  find(tenantId: string): TenantSealer | null;
  /** Returns once the key is gone from the disk. */
  erase(tenantId: string): void;
}

/** A tenant with rows, and its key. */
export interface Tenant {
  /** Its number in the database. */
  readonly no: number;
  readonly id: string;
  readonly sealer: TenantSealer;
}
