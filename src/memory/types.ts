/** The kind of an audit entry. Databases and exports have this name: it stays. */
export const AUDIT_KIND = 'witness';

/** Source of the reasoning bank's patterns; users' patterns have others. */
export const BANK_SOURCE = 'reasoning-bank';

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

/** The kinds of a search by meaning; trajectories repeat what the audit log has. */
export const SEARCHED_KINDS: readonly RecordKind[] = RECORD_KINDS.filter(
  (kind) => kind !== 'state' && kind !== 'trajectory',
);

/** The kinds with answers of the model. */
export const ANSWER_KINDS: readonly RecordKind[] = ['qa-pair', AUDIT_KIND];
/** From here on, a rating says that an answer is right. */
export const MIN_TRUSTED_QUALITY = 0.5;

/** False for answers of the model itself that no rating confirmed: turns of sessions and audit entries. */
export function isTrusted({ kind, fields }: Pick<MemoryRecord, 'kind' | 'fields'>): boolean {
  if (!ANSWER_KINDS.includes(kind)) return true;
  const { sessionId = null, quality = null } = fields;
  const isGenerated = kind === AUDIT_KIND || sessionId !== null;
  return !isGenerated || (typeof quality === 'number' && quality >= MIN_TRUSTED_QUALITY);
}

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Words support equality only, because they are stored as keyed hashes. */
export type FieldValue = number | boolean | string | null;

export interface MemoryRecord {
  /** UUIDv7. */
  readonly id: string;
  readonly tenant: string;
  readonly kind: RecordKind;
  /** Milliseconds since 1970, UTC. */
  readonly createdMs: number;
  readonly updatedMs: number;
  /** Null: never. */
  readonly expiresMs: number | null;
  /** 1 at first; each write adds 1. */
  readonly version: number;
  /** Values for filters. */
  readonly fields: Readonly<Record<string, FieldValue>>;
  /** Everything else, encrypted. */
  readonly body: JsonValue;
  readonly vector: Float32Array | null;
  /**
   * Fingerprint of the embedder: vectors of two spaces are never compared. Null exactly where `vector` is, except in results
   * of a search without vectors; `put` refuses such a record.
   */
  readonly space: string | null;
}

export interface PutRecord extends Omit<MemoryRecord, 'version' | 'createdMs' | 'updatedMs'> {
  /** Default: now for a new record, unchanged for an existing one. */
  readonly createdMs?: number;
  /** The version it replaces, 0 for none; otherwise the whole call is a `conflict`. Default: any. */
  readonly ifVersion?: number;
}

/** Conditions that must all hold; undeclared fields are refused. */
export interface RecordFilter {
  readonly createdFromMs?: number;
  /** Exclusive. */
  readonly createdToMs?: number;
  readonly fields?: readonly FieldCondition[];
  /** Excludes unrated answers of the model (`isTrusted`). Default false. */
  readonly onlyTrusted?: boolean;
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
  /** Null: last page. */
  readonly next: string | null;
}

export interface NearestQuery {
  readonly vector: Float32Array;
  readonly space: string;
  readonly kinds: readonly RecordKind[];
  readonly k: number;
  readonly filter?: RecordFilter;
  /** Candidates of a graph search: more find more and take longer. Default 64. */
  readonly ef?: number;
  /** False: `vector` is null in the results. Default true. */
  readonly withVectors?: boolean;
}

export interface NearRecord {
  readonly record: MemoryRecord;
  /** Cosine: -1 to 1. */
  readonly similarity: number;
}

/** A search by words. */
export interface MatchQuery {
  readonly text: string;
  /** Words that count half: the conversation that a follow-up question refers to. Default: none. */
  readonly context?: string;
  readonly kinds: readonly RecordKind[];
  readonly k: number;
  readonly filter?: RecordFilter;
  /** False: `vector` is null in the results. Default true. */
  readonly withVectors?: boolean;
}

export interface MatchedRecord {
  readonly record: MemoryRecord;
  /** BM25, divided by the highest score that a text could have for the query: above 0, at most 1. */
  readonly score: number;
}

/** A directed edge between two records of one tenant, unique by (from, to, relation). */
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
  /** Why a part of the data is missing; null: complete. */
  readonly degraded: string | null;
  /** Acknowledged writes that are gone or unreadable, and not yet accepted as lost. Absent: none known. */
  readonly lost?: string;
}

/**
 * The storage of a memory. A write that has resolved is durable, and all writes of a call succeed or none. Tenants are isolated.
 * Errors: `invalid_option`, `conflict`, `not_found`, `io`, `disk_full`.
 */
export interface MemoryStore {
  put(records: readonly PutRecord[]): Promise<readonly { readonly id: string; readonly version: number }[]>;
  /**
   * Builds records in the store's thread and puts them, see `record-builders.ts`; watchers of the store do not see them. Absent: the
   * caller builds them.
   */
  putBuilt?(builder: string, input: unknown): Promise<unknown>;
  get(tenant: string, ids: readonly string[]): Promise<readonly (MemoryRecord | null)[]>;
  find(tenant: string, query: FindQuery): Promise<FoundPage>;
  count(tenant: string, query: Pick<FindQuery, 'kinds' | 'filter'>): Promise<number>;
  /** The k nearest matches, the nearest first; fewer only when fewer exist. */
  nearest(tenant: string, query: NearestQuery): Promise<readonly NearRecord[]>;
  /** The k records whose texts match the words of the query best, the best first; fewer when fewer share a word with it. */
  match(tenant: string, query: MatchQuery): Promise<readonly MatchedRecord[]>;
  /** Deletes records and their edges; returns how many existed. */
  delete(tenant: string, ids: readonly string[]): Promise<number>;
  putEdges(tenant: string, edges: readonly Omit<MemoryEdge, 'updatedMs'>[]): Promise<void>;
  edgesOf(tenant: string, query: EdgeQuery): Promise<readonly MemoryEdge[]>;
  deleteEdges(tenant: string, edges: readonly Pick<MemoryEdge, 'from' | 'to' | 'relation'>[]): Promise<number>;
  /** Deletes at most `limit` expired records of all tenants; returns their number. */
  sweepExpired(nowMs: number, limit: number): Promise<number>;
  /** Destroys a tenant's key, then deletes its rows and vectors. */
  eraseTenant(tenant: string): Promise<void>;
  stats(tenant: string | null): Promise<StoreStats>;
  /** Throws when data is damaged. */
  checkIntegrity(): Promise<void>;
  close(): Promise<void>;
}
