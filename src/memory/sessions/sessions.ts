import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, resolveOptions } from '../../core/options.ts';
import { nameId } from '../common/ids.ts';
import { createLruMap } from '../common/lru-map.ts';
import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices, Sha256 } from '../common/services.ts';
import { withoutUndefined } from '../common/store-access.ts';
import {
  sessionFromRecord,
  sessionToRecord,
  turnFromRecord,
  turnToRecord,
  type SessionState,
  type SessionTurn,
} from '../schemas/session.ts';
import type { FieldCondition, FindQuery, JsonValue, MemoryStore, PutRecord } from '../types.ts';

export interface SessionOptions {
  /** How long a session may be unused before it expires. Default 24 hours. */
  readonly idleMs?: number;
  /** Turns kept per session. Default 200. */
  readonly maxTurns?: number;
  /** Sessions cached in memory. Default 4096. */
  readonly cacheEntries?: number;
}

/** The id of a session's record, so that a lookup needs no search. */
export function sessionRecordId(sha256: Sha256, tenant: string, sessionId: string): string {
  return nameId(sha256, tenant, 'session', sessionId);
}

/** The parts of a session that a caller may change. */
export interface SessionChange {
  readonly userId?: string | null;
  readonly activeAdapter?: string | null;
  readonly metadata?: Readonly<Record<string, JsonValue>>;
  /** Both together. */
  readonly contextEmbedding?: Float32Array | null;
  readonly space?: string | null;
}

export type NewTurn = Pick<SessionTurn, 'query' | 'answer'> &
  Partial<Pick<SessionTurn, 'id' | 'requestId' | 'quality' | 'embedding' | 'space'>>;

export interface SessionQuery {
  readonly userId?: string;
  readonly adapter?: string;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
}

export interface SessionPage {
  readonly sessions: readonly SessionState[];
  readonly next: string | null;
}

export interface SessionIndex {
  /** Null: not found, or expired. */
  get(tenant: string, sessionId: string): Promise<SessionState | null>;
  /** From the cache; undefined on a miss. */
  peek(tenant: string, sessionId: string): SessionState | undefined;
  /** Creates it, changes it, or only records its use. */
  touch(tenant: string, sessionId: string, change?: SessionChange): Promise<SessionState>;
  /** Adds an exchange and creates the session if needed. Beyond `maxTurns` the oldest turns are deleted. */
  addTurn(tenant: string, sessionId: string, turn: NewTurn, change?: SessionChange): Promise<SessionTurn>;
  hasTurn(tenant: string, turnId: string): Promise<boolean>;
  /** Stores the rating of a turn, found by its request among the newest; false: not found. A good one is recalled from then on. */
  rateTurn(tenant: string, sessionId: string, requestId: string, quality: number): Promise<boolean>;
  /** The newest first. */
  turns(tenant: string, sessionId: string, limit?: number): Promise<readonly SessionTurn[]>;
  /** The newest first. */
  find(tenant: string, query: SessionQuery): Promise<SessionPage>;
  /** By meaning. */
  similar(
    tenant: string,
    query: { vector: Float32Array; space: string; k: number; userId?: string; adapter?: string },
  ): Promise<readonly { session: SessionState; similarity: number }[]>;
  /** With its turns; returns whether it existed. */
  remove(tenant: string, sessionId: string): Promise<boolean>;
  /** Deletes at most `limit` expired sessions; returns their number. */
  sweep(tenant: string, limit?: number): Promise<number>;
  stats(): { readonly numCached: number; readonly numHits: number; readonly numMisses: number };
}

interface Cached {
  readonly session: SessionState;
  readonly version: number;
}

const TURN_PAGE = 1000;
/** Turns among which a rated one is looked for: people rate what they see. */
const MAX_RATED_TURNS = 100;

/** Sessions with a write-through cache of what the store has acknowledged. */
export function createSessionIndex(store: MemoryStore, services: MemoryServices, given?: SessionOptions): SessionIndex {
  const options = resolveOptions<Required<SessionOptions>>('sessions', given, {
    idleMs: integerOption(86_400_000, 1, 3_650 * 86_400_000),
    // Trimming deletes them in one call.
    maxTurns: integerOption(200, 1, 100_000),
    cacheEntries: integerOption(4096, 1, 1_000_000),
  });
  const cache = createLruMap<Cached>(options.cacheEntries);
  const keyOf = (tenant: string, sessionId: string): string => `${tenant.length}:${tenant}${sessionId}`;
  const idOf = (tenant: string, sessionId: string): string => sessionRecordId(services.sha256, tenant, sessionId);
  const isIdle = (session: SessionState): boolean => session.idleEndMs <= services.now();
  let numHits = 0;
  let numMisses = 0;

  const load = async (tenant: string, sessionId: string): Promise<Cached | null> => {
    const [record] = await store.get(tenant, [idOf(tenant, sessionId)]);
    if (!record) return null;
    const cached = { session: Object.freeze(sessionFromRecord(record)), version: record.version };
    cache.set(keyOf(tenant, sessionId), cached);
    return cached;
  };
  const empty = (sessionId: string, nowMs: number): SessionState => ({
    sessionId,
    userId: null,
    contextEmbedding: null,
    space: null,
    activeAdapter: null,
    turnCount: 0,
    createdMs: nowMs,
    lastActiveMs: nowMs,
    idleEndMs: nowMs + options.idleMs,
    lastTurnId: null,
    metadata: {},
  });
  /** Reads, changes and writes a session and `with`; repeats it on conflicts with other writers. */
  const update = (
    tenant: string,
    sessionId: string,
    change: (session: SessionState) => { session: SessionState; with: readonly PutRecord[] },
  ): Promise<SessionState> =>
    retryConflict(async (numTries) => {
      const key = keyOf(tenant, sessionId);
      if (numTries > 0) cache.delete(key);
      let cached = cache.get(key) ?? (await load(tenant, sessionId));
      if (cached !== null && isIdle(cached.session)) {
        // It starts anew: turns from before its end must not return.
        await removeAll(tenant, sessionId);
        cached = null;
      }
      const nowMs = Math.floor(services.now());
      const before = cached?.session ?? empty(sessionId, nowMs);
      const { session, with: others } = change(before);
      // A clock that goes back must not end a session sooner.
      const lastActiveMs = Math.max(before.lastActiveMs, nowMs);
      const next = { ...session, lastActiveMs, idleEndMs: Math.max(before.idleEndMs, lastActiveMs + options.idleMs) };
      const put = {
        ...sessionToRecord(next, { id: idOf(tenant, sessionId), tenant }),
        ifVersion: cached?.version ?? 0,
      };
      try {
        const [written] = await store.put([put, ...others]);
        cache.set(key, { session: Object.freeze(next), version: written!.version });
      } catch (error) {
        cache.delete(key);
        throw error;
      }
      return next;
    });

  const turnFilter = (sessionId: string, ...more: FieldCondition[]) => ({
    fields: [{ field: 'sessionId', is: '=', value: sessionId }, ...more] as FieldCondition[],
  });
  const activeFilter = (userId?: string, adapter?: string) => {
    const fields: FieldCondition[] = [{ field: 'idleEndMs', is: '>', value: services.now() }];
    if (userId !== undefined) fields.push({ field: 'userId', is: '=', value: userId });
    if (adapter !== undefined) fields.push({ field: 'adapter', is: '=', value: adapter });
    return { fields };
  };
  const removeAll = async (tenant: string, sessionId: string): Promise<boolean> => {
    const id = idOf(tenant, sessionId);
    cache.delete(keyOf(tenant, sessionId));
    for (;;) {
      // The session is deleted with its last turns, so that a removal cut short by a crash can be repeated.
      const query: FindQuery = {
        kinds: ['qa-pair'],
        filter: turnFilter(sessionId),
        order: 'oldest',
        limit: TURN_PAGE - 1,
      };
      const { records, next } = await store.find(tenant, query);
      const ids = records.map((record) => record.id);
      const numDeleted = await store.delete(tenant, next === null ? [...ids, id] : ids);
      if (next === null) return numDeleted > ids.length;
    }
  };
  const trimTurns = async (tenant: string, sessionId: string, turnCount: number): Promise<void> => {
    if (turnCount <= options.maxTurns) return;
    const filter = turnFilter(sessionId, { field: 'turn', is: '<', value: turnCount - options.maxTurns });
    const { records } = await store.find(tenant, { kinds: ['qa-pair'], filter, order: 'oldest', limit: TURN_PAGE });
    await store.delete(
      tenant,
      records.map(({ id }) => id),
    );
  };
  const peek = (tenant: string, sessionId: string): SessionState | undefined => {
    const cached = cache.get(keyOf(tenant, sessionId));
    return cached === undefined || isIdle(cached.session) ? undefined : cached.session;
  };

  return {
    peek,
    async get(tenant, sessionId) {
      const cached = peek(tenant, sessionId);
      if (cached !== undefined) {
        numHits++;
        return cached;
      }
      numMisses++;
      const loaded = await load(tenant, sessionId);
      return loaded === null || isIdle(loaded.session) ? null : loaded.session;
    },
    touch: (tenant, sessionId, change = {}) =>
      update(tenant, sessionId, (session) => ({ session: { ...session, ...change }, with: [] })),
    async addTurn(tenant, sessionId, turn, change = {}) {
      const id = turn.id ?? services.newId();
      let added: SessionTurn | null = null;
      let previous: string | null = null;
      const { turnCount } = await update(tenant, sessionId, (session) => {
        previous = session.lastTurnId;
        const createdMs = Math.max(session.lastActiveMs, Math.floor(services.now()));
        const fresh = { requestId: null, quality: null, embedding: null, space: null, ...turn };
        added = { ...fresh, id, sessionId, turn: session.turnCount, createdMs };
        const next = { ...session, ...change, turnCount: session.turnCount + 1, lastTurnId: id };
        return { session: next, with: [{ ...turnToRecord(added, tenant), ifVersion: 0 }] };
      });
      const edge = { weight: 1, confidence: 1 };
      const edges = [{ from: idOf(tenant, sessionId), to: id, relation: 'session', ...edge }];
      if (previous !== null) edges.push({ from: id, to: previous, relation: 'follows', ...edge });
      try {
        await store.putEdges(tenant, edges);
      } catch (error) {
        // Another writer may have trimmed the previous turn; this one is written.
        if (!(error instanceof RuvLLMError && error.code === 'not_found')) throw error;
      }
      await trimTurns(tenant, sessionId, turnCount);
      return added!;
    },
    hasTurn: async (tenant, turnId) => (await store.get(tenant, [turnId]))[0] != null,
    async rateTurn(tenant, sessionId, requestId, quality) {
      const query = {
        kinds: ['qa-pair'],
        filter: turnFilter(sessionId),
        order: 'newest',
        limit: MAX_RATED_TURNS,
      } as const;
      const { records } = await store.find(tenant, query);
      const record = records.find((one) => turnFromRecord(one).requestId === requestId);
      if (record === undefined) return false;
      const turn = { ...turnFromRecord(record), quality };
      await store.put([{ ...turnToRecord(turn, tenant), ifVersion: record.version }]);
      return true;
    },
    async turns(tenant, sessionId, limit = 20) {
      const { records } = await store.find(tenant, {
        kinds: ['qa-pair'],
        filter: turnFilter(sessionId),
        order: 'newest',
        limit,
      });
      return records.map(turnFromRecord).sort((a, b) => b.turn - a.turn);
    },
    async find(tenant, { userId, adapter, limit = 50, after }) {
      const filter = activeFilter(userId, adapter);
      const query = { kinds: ['session'], filter, order: 'newest', limit, after } as const;
      const page = await store.find(tenant, withoutUndefined(query));
      return { sessions: page.records.map(sessionFromRecord), next: page.next };
    },
    async similar(tenant, { vector, space, k, userId, adapter }) {
      const filter = activeFilter(userId, adapter);
      const near = await store.nearest(tenant, { vector, space, kinds: ['session'], k, filter });
      return near.map(({ record, similarity }) => ({ session: sessionFromRecord(record), similarity }));
    },
    remove: removeAll,
    async sweep(tenant, limit = 1000) {
      const filter = { fields: [{ field: 'idleEndMs', is: '<=', value: services.now() }] } as const;
      const { records } = await store.find(tenant, { kinds: ['session'], filter, order: 'oldest', limit });
      let numSwept = 0;
      for (const { fields } of records) {
        const sessionId = String(fields['sessionId']);
        // It may have been used since the search.
        if (peek(tenant, sessionId) !== undefined) continue;
        await removeAll(tenant, sessionId);
        numSwept++;
      }
      return numSwept;
    },
    stats: () => ({ numCached: cache.size, numHits, numMisses }),
  };
}
