import { RuvLLMError } from '../../core/errors.ts';
import { decodeSessionState, encodeSessionState, type SessionState } from './session-state.ts';

/** Encrypted storage of states, one key per tenant. A state is on disk when `put` returns. */
export interface SessionRecords {
  put(tenant: string, id: string, bytes: Uint8Array): void;
  /** null if not found; throws if it is damaged. */
  get(tenant: string, id: string): Uint8Array | null;
  delete(tenant: string, id: string): boolean;
  list(tenant: string): readonly string[];
  /** Deletes all records of a tenant, of any model, and its key. */
  eraseTenant(tenant: string): void;
  /** Records of a tenant, of any model, also unreadable ones. */
  countTenant(tenant: string): number;
}

export interface SessionName {
  readonly tenant: string;
  readonly id: string;
}

/** A session in a listing. */
export interface SessionInfo extends SessionName {
  readonly numTokens: number;
  readonly numTurns: number;
  /** Milliseconds since 1970. */
  readonly lastUsedMs: number;
}

export interface SessionTableOptions {
  readonly maxSessions: number;
  readonly vocabSize: number;
  /** null: sessions are only in memory. */
  readonly records: SessionRecords | null;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/** The states of all conversations: recently used ones in memory, all with tokens also in the records. */
export interface SessionTable {
  readonly size: number;
  readonly maxSessions: number;
  /** Whether sessions survive a restart. */
  readonly isKept: boolean;
  /** The state of a session, from memory or the records; null if not found. */
  find(name: SessionName): SessionState | null;
  /** Stores a turn in memory and the records; `conflict` if another process continued the session. */
  keepTurn(name: SessionName, tokenIds: Int32Array, numTurns: number): void;
  /** Counts a turn of a conversation whose caller has the history. */
  countTurn(name: SessionName, numTokens: number): void;
  /** Deletes a session; false if not found. */
  delete(name: SessionName): boolean;
  /** Deletes all sessions of a tenant. */
  eraseTenant(tenant: string): void;
  countTenant(tenant: string): number;
  /** All sessions of a tenant, the most recently used first. */
  list(tenant: string): SessionInfo[];
}

/** With the tenant's length, so that tenant "a" with "bc" and tenant "ab" with "c" are different sessions. */
function keyOf({ tenant, id }: SessionName): string {
  return `${tenant.length}:${tenant}${id}`;
}

export function createSessionTable(options: SessionTableOptions): SessionTable {
  const { maxSessions, vocabSize, records, wallClock } = options;
  /** In insertion order: the first entry is the least recently used. */
  const entries = new Map<string, { readonly name: SessionName; readonly state: SessionState }>();

  function remember(name: SessionName, state: SessionState): SessionState {
    const key = keyOf(name);
    entries.delete(key);
    entries.set(key, { name: { tenant: name.tenant, id: name.id }, state });
    for (const oldest of entries.keys()) {
      if (entries.size <= maxSessions) break;
      entries.delete(oldest);
    }
    return state;
  }

  function read({ tenant, id }: SessionName): SessionState | null {
    const bytes = records?.get(tenant, id) ?? null;
    return bytes === null ? null : decodeSessionState(bytes, vocabSize);
  }

  /** Of two processes that continue one session, the second must not overwrite the first one's turn. */
  function requireUnchanged(name: SessionName, expected: number): void {
    if (records === null) return;
    const numTurns = read(name)?.numTurns ?? 0;
    if (numTurns === expected) return;
    entries.delete(keyOf(name)); // outdated
    throw new RuvLLMError(
      'conflict',
      `session "${name.id}" has ${numTurns} turns now, ${expected} when this one began: another process continued it`,
      { data: { numTurns, expected }, isRetryable: true },
    );
  }

  function find(name: SessionName): SessionState | null {
    const state = entries.get(keyOf(name))?.state ?? read(name);
    return state === null ? null : remember(name, state);
  }

  return {
    maxSessions,
    isKept: records !== null,
    get size() {
      return entries.size;
    },
    find,
    keepTurn(name, tokenIds, numTurns) {
      const state = { tokenIds, numTokens: tokenIds.length, numTurns, lastUsedMs: wallClock() };
      requireUnchanged(name, numTurns - 1);
      records?.put(name.tenant, name.id, encodeSessionState(tokenIds, state));
      remember(name, state);
    },
    countTurn(name, numTokens) {
      const known = find(name);
      // A turn with tokens may have ended meanwhile; it must not be overwritten.
      if (known !== null && known.tokenIds !== null) return;
      remember(name, { tokenIds: null, numTokens, numTurns: (known?.numTurns ?? 0) + 1, lastUsedMs: wallClock() });
    },
    delete(name) {
      const wasKept = records?.delete(name.tenant, name.id) ?? false;
      return entries.delete(keyOf(name)) || wasKept;
    },
    eraseTenant(tenant) {
      for (const [key, { name }] of entries) if (name.tenant === tenant) entries.delete(key);
      records?.eraseTenant(tenant);
    },
    countTenant: (tenant) =>
      [...entries.values()].filter(({ name }) => name.tenant === tenant).length + (records?.countTenant(tenant) ?? 0),
    list(tenant) {
      const infos = new Map<string, SessionInfo>();
      const add = (id: string, { numTokens, numTurns, lastUsedMs }: SessionState): void =>
        void infos.set(id, { tenant, id, numTokens, numTurns, lastUsedMs });
      for (const { name, state } of entries.values()) if (name.tenant === tenant) add(name.id, state);
      for (const id of records?.list(tenant) ?? []) {
        const state = infos.has(id) ? null : read({ tenant, id });
        if (state !== null) add(id, state);
      }
      return [...infos.values()].sort((a, b) => b.lastUsedMs - a.lastUsedMs);
    },
  };
}

/** Rejects a session with tokens for a call that sends its own history, because one of the two would be lost. */
export function requireHistory({ id }: SessionName, state: SessionState | null): void {
  if (state === null || state.tokenIds === null) return;
  throw new RuvLLMError(
    'invalid_option',
    `option "session": "${id}" has ${state.numTokens} stored tokens; continue it with model.session(id)`,
    { data: { option: 'session', numTokens: state.numTokens } },
  );
}
