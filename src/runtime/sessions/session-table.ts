import { RuvLLMError } from '../../core/errors.ts';
import { decodeSessionState, encodeSessionState, type SessionState } from './session-state.ts';

/** Where states outlive the process, sealed for their tenant. What `put` has returned from is kept. */
export interface SessionRecords {
  put(tenant: string, id: string, bytes: Uint8Array): void;
  /** null when there is none; throws when it is there and damaged. */
  get(tenant: string, id: string): Uint8Array | null;
  delete(tenant: string, id: string): boolean;
  list(tenant: string): readonly string[];
}

export interface SessionName {
  readonly tenant: string;
  readonly id: string;
}

/** A session as a listing shows it. */
export interface SessionInfo extends SessionName {
  readonly numTokens: number;
  readonly numTurns: number;
  /** Milliseconds since 1970. */
  readonly lastUsedMs: number;
}

export interface SessionTableOptions {
  readonly maxSessions: number;
  readonly vocabSize: number;
  /** null: sessions end with the process. */
  readonly records: SessionRecords | null;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/** The states of all conversations that are known: those used last in memory, all with tokens in the records. */
export interface SessionTable {
  readonly size: number;
  readonly maxSessions: number;
  /** Whether sessions outlive the process. */
  readonly isKept: boolean;
  /** The state of a session, from memory or the records; null when there is none. */
  find(name: SessionName): SessionState | null;
  /** The session now has these tokens and turns; when this returns, the records have it. `conflict` when another process went on with it. */
  keepTurn(name: SessionName, tokenIds: Int32Array, numTurns: number): void;
  /** One turn more of a conversation whose history the caller keeps. */
  countTurn(name: SessionName, numTokens: number): void;
  /** Forgets a session for good; false when there was none. */
  delete(name: SessionName): boolean;
  /** All sessions of a tenant, the one used last first. */
  list(tenant: string): SessionInfo[];
}

/** The length says where the tenant ends: without it tenant "a" with "bc" and tenant "ab" with "c" would be one session. */
function keyOf({ tenant, id }: SessionName): string {
  return `${tenant.length}:${tenant}${id}`;
}

export function createSessionTable(options: SessionTableOptions): SessionTable {
  const { maxSessions, vocabSize, records, wallClock } = options;
  /** The order of a Map is that of insertion: the first entry is the one not used for longest. */
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

  /** Two processes that go on with one conversation: the second to end its turn must not forget the first. */
  function requireUnchanged(name: SessionName, expected: number): void {
    if (records === null) return;
    const numTurns = read(name)?.numTurns ?? 0;
    if (numTurns === expected) return;
    entries.delete(keyOf(name)); // what this process remembers is of yesterday
    throw new RuvLLMError(
      'conflict',
      `session "${name.id}" has ${numTurns} turns now, ${expected} when this one began: somebody else went on with it`,
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
      // One of the other kind may have ended meanwhile; its tokens are worth more than a count.
      if (known !== null && known.tokenIds !== null) return;
      remember(name, { tokenIds: null, numTokens, numTurns: (known?.numTurns ?? 0) + 1, lastUsedMs: wallClock() });
    },
    delete(name) {
      const wasKept = records?.delete(name.tenant, name.id) ?? false;
      return entries.delete(keyOf(name)) || wasKept;
    },
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

/** Refuses a conversation of tokens for a call that brings its own history: one of the two would be lost. */
export function requireHistory({ id }: SessionName, state: SessionState | null): void {
  if (state === null || state.tokenIds === null) return;
  throw new RuvLLMError(
    'invalid_option',
    `option "session": "${id}" is a conversation of ${state.numTokens} tokens, continued with model.session(id)`,
    { data: { option: 'session', numTokens: state.numTokens } },
  );
}
