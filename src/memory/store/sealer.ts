/** Seals and names a tenant's data. */
export interface TenantSealer {
  /** Opens again only with the same associated data. */
  seal(associated: Uint8Array, plain: Uint8Array): Uint8Array;
  /** Null: changed, or other associated data. */
  unseal(associated: Uint8Array, sealed: Uint8Array): Uint8Array | null;
  /** A keyed hash of 32 hex digits. */
  nameOf(purpose: string, text: string): string;
}

/** One key per tenant; erasing it makes all sealed data unreadable. */
export interface TenantKeyRing {
  /** The tenant's visible id. */
  idOf(tenant: string): string;
  /** Creates it if needed. */
  obtain(tenantId: string): TenantSealer;
  find(tenantId: string): TenantSealer | null;
  /** Returns when the key is deleted from disk. */
  erase(tenantId: string): void;
}

/** A tenant with rows, and its key. */
export interface Tenant {
  /** Its number in the database. */
  readonly no: number;
  readonly id: string;
  readonly sealer: TenantSealer;
}
