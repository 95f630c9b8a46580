import { RuvLLMError } from '../../core/errors.ts';
import { STATE_TENANT } from '../../runtime/lower-layers.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { createSecret, hashSecret, isSameText, parseToken } from './key-secret.ts';

/** `read-only` keys read, `inference` keys also generate, `download` keys get model files, `admin` keys do everything. */
export const KEY_SCOPES = ['inference', 'admin', 'read-only', 'download'] as const;
/** A scope of an API key. */
export type KeyScope = (typeof KEY_SCOPES)[number];

/** The public part of a key. */
export interface KeyInfo {
  readonly id: string;
  readonly name: string;
  /** Owner of its sessions, pages and requests. */
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  /** Null: valid. */
  readonly revokedMs: number | null;
}

/** A stored key: no secret, only its salted hash. */
export interface KeyRecord extends KeyInfo {
  readonly salt: string;
  readonly hash: string;
}

/** Storage of keys; a record is durable once `put` returns. */
export interface KeyRecords {
  get(id: string): KeyRecord | null;
  put(record: KeyRecord): void;
  list(): readonly KeyRecord[];
  /** Keys that are refused because their record is damaged, missing or older than it was; the others work. Default: none. */
  problems?(): readonly string[];
  /** Accepts that the record of a key is lost; false: no such key. Default: none is. */
  forget?(id: string): boolean;
}

/** Name, tenant and scopes of a new key. */
export interface NewKey {
  readonly name: string;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
}

/** The API keys of a server. */
export interface KeyStore {
  /** The key of a token; null if unknown, revoked or wrong. */
  verify(token: string): Promise<KeyInfo | null>;
  /** Creates a key. Its token is only returned here. */
  create(key: NewKey): Promise<{ readonly key: KeyInfo; readonly token: string }>;
  /** Whether a key exists and is not revoked. */
  isValid(id: string): boolean;
  /** Revokes a key permanently and returns it; null if not found. */
  revoke(id: string): KeyInfo | null;
  /** All keys, including revoked ones, newest first. */
  list(): readonly KeyInfo[];
  /** Why keys are refused although they were created; empty: all records are intact. */
  problems(): readonly string[];
  /** Accepts that the record of a key is lost: it stays refused and is no longer a problem. False: no such key. */
  forget(id: string): boolean;
}

/** Compared instead of an unknown key, so that an unknown id takes as long as a wrong secret. */
const UNKNOWN_KEY = { salt: '0'.repeat(32), hash: '' };

/** Creates a key store over `records`. */
export function createKeyStore(records: KeyRecords, wallClock: () => number): KeyStore {
  return {
    async verify(token) {
      const parts = parseToken(token);
      if (parts === null) return null;
      const record = records.get(parts.id);
      const { salt, hash } = record ?? UNKNOWN_KEY;
      const isSame = isSameText(hashSecret(parts.secret, salt), hash);
      return isSame && record !== null && record.revokedMs === null ? toInfo(record) : null;
    },
    async create({ name, tenant, scopes }) {
      nameOption(name, 'name');
      nameOption(tenant, 'tenant');
      if (tenant === STATE_TENANT) {
        throw new RuvLLMError('invalid_option', `the tenant "${STATE_TENANT}" is reserved`, {
          data: { option: 'tenant' },
        });
      }
      if (scopes.length === 0 || !scopes.every((scope) => KEY_SCOPES.includes(scope))) {
        throw new RuvLLMError('invalid_option', `scopes must be one or more of ${KEY_SCOPES.join(', ')}`, {
          data: { option: 'scopes' },
        });
      }
      const { id, token, salt, hash } = createSecret();
      const unique = KEY_SCOPES.filter((scope) => scopes.includes(scope));
      const record = { id, name, tenant, scopes: unique, createdMs: wallClock(), revokedMs: null, salt, hash };
      records.put(record);
      return { key: toInfo(record), token };
    },
    isValid: (id) => records.get(id)?.revokedMs === null,
    revoke(id) {
      const record = records.get(id);
      if (record === null) return null;
      const revoked = { ...record, revokedMs: record.revokedMs ?? wallClock() };
      if (record.revokedMs === null) records.put(revoked);
      return toInfo(revoked);
    },
    list: () =>
      records
        .list()
        .map(toInfo)
        .sort((a, b) => b.createdMs - a.createdMs || (a.id < b.id ? -1 : 1)),
    problems: () => records.problems?.() ?? [],
    forget: (id) => records.forget?.(id) ?? false,
  };
}

function toInfo({ id, name, tenant, scopes, createdMs, revokedMs }: KeyRecord): KeyInfo {
  return { id, name, tenant, scopes, createdMs, revokedMs };
}
