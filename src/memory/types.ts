/** The kind of an audit entry. Databases and exports have this name: it stays. */
export const AUDIT_KIND = 'witness';

/** The kinds of records; `state` is internal to the memory. */
export const RECORD_KINDS = [
  'document',
  'query',
  'agent-step',
  'fact',
  'qa-pair',
  'concept',
  'pattern',
  'session',
  'policy',
  AUDIT_KIND,
  'state',
  'trajectory',
] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

/** What a search by meaning goes over: a trajectory only says again what the audit log says of the request. */
export const SEARCHED_KINDS: readonly RecordKind[] = RECORD_KINDS.filter(
  (kind) => kind !== 'state' && kind !== 'trajectory',
);

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Numbers and booleans can be compared; words only be found by equality, for they are stored as keyed hashes. */
export type FieldValue = number | boolean | string | null;

/** One thing that is remembered. */
export interface MemoryRecord {
  /** UUIDv7. */
  readonly id: string;
  readonly tenant: string;
  readonly kind: RecordKind;
  /** Milliseconds since 1970, UTC. */
  readonly createdMs: number;
  readonly updatedMs: number;
  /** Null: kept until it is deleted. */
  readonly expiresMs: number | null;
  /** 1 at first, and one more with each write. */
  readonly version: number;
  /** What it can be found by. */
  readonly fields: Readonly<Record<string, FieldValue>>;
  /** Everything else; nobody without the tenant's key can read it. */
  readonly body: JsonValue;
  readonly vector: Float32Array | null;
  /**
   * Fingerprint of what made the vector: vectors of two spaces are never compared. Null exactly where `vector` is, but for a search
   * that left vectors out; such a record is refused when it is put.
   */
  readonly space: string | null;
}

/** A record to be written. */
export interface PutRecord extends Omit<MemoryRecord, 'version' | 'createdMs' | 'updatedMs'> {
  /** Default: now for a new record, as it was for an old one. */
  readonly createdMs?: number;
  /** The version it replaces, 0 for none; another one there is a `conflict`, and nothing of the call is written. Default: any. */
  readonly ifVersion?: number;
}

/** Conditions that must all hold; a field nobody declared is refused, not ignored. */
export interface RecordFilter {
  readonly createdFromMs?: number;
  /** Up to, not including. */
  readonly createdToMs?: number;
  readonly fields?: readonly FieldCondition[];
}

export type FieldCondition =
  | { readonly field: string; readonly is: '=' | '!='; readonly value: FieldValue }
  | { readonly field: string; readonly is: '<' | '<=' | '>' | '>='; readonly value: number }
  | { readonly field: string; readonly is: 'in'; readonly values: readonly FieldValue[] };

export interface FindQuery {
  readonly kinds: readonly RecordKind[];
  readonly filter?: RecordFilter;
  /** By `createdMs`, then id. */
  readonly order: 'newest' | 'oldest';
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string;
}

export interface FoundPage {
  readonly records: readonly MemoryRecord[];
  /** Null: there is no more. */
  readonly next: string | null;
}

export interface NearestQuery {
  readonly vector: Float32Array;
  readonly space: string;
  readonly kinds: readonly RecordKind[];
  readonly k: number;
  readonly filter?: RecordFilter;
  /** How thorough a search of a large set is. Default 64. */
  readonly ef?: number;
  /** Without them, records come with `vector` null beside their space: what is not looked at need not be carried. Default true. */
  readonly withVectors?: boolean;
}

export interface NearRecord {
  readonly record: MemoryRecord;
  /** Cosine: -1 to 1. */
  readonly similarity: number;
}

/** A directed edge between two records of one tenant; there is one for each (from, to, relation). */
export interface MemoryEdge {
  readonly from: string;
  readonly to: string;
  readonly relation: string;
  readonly weight: number;
  /** 0 to 1. */
  readonly confidence: number;
  readonly updatedMs: number;
}

export interface EdgeQuery {
  readonly ids: readonly string[];
  readonly direction: 'out' | 'in' | 'both';
  /** Default: all. */
  readonly relations?: readonly string[];
  /** The heaviest first. */
  readonly limit: number;
}

export interface StoreStats {
  readonly numRecords: Readonly<Partial<Record<RecordKind, number>>>;
  readonly numEdges: number;
  readonly numVectors: number;
  readonly diskBytes: number;
  /** Null: everything is as it should be; else why only a part of the memory is there. */
  readonly degraded: string | null;
}

/**
 * Where everything is remembered. Every write that has resolved is durable, and a call's writes come together or not at all.
 * A tenant sees nothing of another. Typed errors: `invalid_option`, `conflict`, `not_found`, `io`, `disk_full`.
 */
export interface MemoryStore {
  put(records: readonly PutRecord[]): Promise<readonly { readonly id: string; readonly version: number }[]>;
  get(tenant: string, ids: readonly string[]): Promise<readonly (MemoryRecord | null)[]>;
  find(tenant: string, query: FindQuery): Promise<FoundPage>;
  count(tenant: string, query: Pick<FindQuery, 'kinds' | 'filter'>): Promise<number>;
  /** The k nearest that pass the filter, whenever there are so many; the nearest first. */
  nearest(tenant: string, query: NearestQuery): Promise<readonly NearRecord[]>;
  /** Deletes records and their edges; the number that were there. */
  delete(tenant: string, ids: readonly string[]): Promise<number>;
  putEdges(tenant: string, edges: readonly Omit<MemoryEdge, 'updatedMs'>[]): Promise<void>;
  edgesOf(tenant: string, query: EdgeQuery): Promise<readonly MemoryEdge[]>;
  deleteEdges(tenant: string, edges: readonly Pick<MemoryEdge, 'from' | 'to' | 'relation'>[]): Promise<number>;
  /** Deletes what has expired, of all tenants, at most `limit`; the number. */
  sweepExpired(nowMs: number, limit: number): Promise<number>;
  /** Forgets a tenant for good: its key first, then the rows and vectors. */
  eraseTenant(tenant: string): Promise<void>;
  stats(tenant: string | null): Promise<StoreStats>;
  /** Throws with what does not fit together. */
  checkIntegrity(): Promise<void>;
  close(): Promise<void>;
}
