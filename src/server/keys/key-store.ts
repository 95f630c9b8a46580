import { RuvLLMError } from '../../core/errors.ts';
import { STATE_TENANT } from '../../runtime/lower-layers.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { createSecret, hashSecret, isSameText, parseToken } from './key-secret.ts';

/** What a key allows: `read-only` looks, `inference` also generates, `admin` does everything. */
export const KEY_SCOPES = ['inference', 'admin', 'read-only'] as const;
/** What a key may allow. */
export type KeyScope = (typeof KEY_SCOPES)[number];

/** What everyone may know of a key. */
export interface KeyInfo {
  readonly id: string;
  readonly name: string;
  /** Whose sessions, pages and requests it stands for. */
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  /** null: it is good. */
  readonly revokedMs: number | null;
}

/** What is kept of a key: no secret, only its salted hash. */
export interface KeyRecord extends KeyInfo {
  readonly salt: string;
  readonly hash: string;
}

/** Where records are kept. What `put` has returned from survives the process. */
export interface KeyRecords {
  get(id: string): KeyRecord | null;
  put(record: KeyRecord): void;
  list(): readonly KeyRecord[];
}

/** A key that is to be made. */
export interface NewKey {
  readonly name: string;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
}

/** The API keys of a server. */
export interface KeyStore {
  /** The key a token belongs to; null when there is none, or it was revoked, or the secret is wrong. */
  verify(token: string): Promise<KeyInfo | null>;
  /** A new key and its token, which is never to be seen again. */
  create(key: NewKey): Promise<{ readonly key: KeyInfo; readonly token: string }>;
  /** Ends a key for good; null when there is none, the key as it is now otherwise. */
  revoke(id: string): KeyInfo | null;
  /** All keys, revoked ones included, the newest first. */
  list(): readonly KeyInfo[];
}

/** Compared with when there is no such key, so that an unknown id takes as long as a wrong secret. */
const NOBODY = { salt: '0'.repeat(32), hash: '' };

/** The keys in `records`; of each only a salted hash is kept. */
export function createKeyStore(records: KeyRecords, wallClock: () => number): KeyStore {
  return {
    async verify(token) {
      const parsed = parseToken(token);
      if (parsed === null) return null;
      const record = records.get(parsed.id);
      const { salt, hash } = record ?? NOBODY;
      const isSame = isSameText(hashSecret(parsed.secret, salt), hash);
      return isSame && record !== null && record.revokedMs === null ? toInfo(record) : null;
    },
    async create({ name, tenant, scopes }) {
      nameOption(name, 'name');
      nameOption(tenant, 'tenant');
      if (tenant === STATE_TENANT) {
        throw new RuvLLMError('invalid_option', `the tenant "${STATE_TENANT}" is the memory's own`, {
          data: { option: 'tenant' },
        });
      }
      if (scopes.length === 0 || !scopes.every((scope) => KEY_SCOPES.includes(scope))) {
        throw new RuvLLMError('invalid_option', `scopes must be some of ${KEY_SCOPES.join(', ')}`, {
          data: { option: 'scopes' },
        });
      }
      const { id, token, salt, hash } = createSecret();
      const unique = KEY_SCOPES.filter((scope) => scopes.includes(scope));
      const record = { id, name, tenant, scopes: unique, createdMs: wallClock(), revokedMs: null, salt, hash };
      records.put(record);
      return { key: toInfo(record), token };
    },
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
  };
}

function toInfo({ id, name, tenant, scopes, createdMs, revokedMs }: KeyRecord): KeyInfo {
  return { id, name, tenant, scopes, createdMs, revokedMs };
}
