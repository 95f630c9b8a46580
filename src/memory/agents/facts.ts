import { nameId } from '../common/ids.ts';
import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import type { FieldCondition, MemoryRecord, MemoryStore } from '../types.ts';
import { factIdOf, isSet, sameValue } from './fact-key.ts';
import { factFromRecord, factText, factToRecord, isAgentFact, MAX_USES, parseStatement, type StoredFact } from './fact-record.ts'; // prettier-ignore
import { AGENT_SOURCE, type AgentScope, type Episode, type Fact, type Statement } from './types.ts';

/** `same`: this message said it already; `agrees`: it denies a value that the fact does not have; `older`: a newer one is known. */
export type AssertOutcome = 'new' | 'replaced' | 'same' | 'agrees' | 'older';

/** Facts distilled from episodes: one current value per key, and the values that it replaced. */
export interface Facts {
  /** Stores a statement of a message. The newest of its key becomes current, in whatever order they arrive. */
  assert(
    scope: AgentScope,
    statement: Statement,
    source: Episode,
    order?: number,
  ): Promise<{ readonly outcome: AssertOutcome; readonly fact: Fact }>;
  /** A current or replaced fact; null: not found. */
  get(tenant: string, id: string): Promise<Fact | null>;
  /** The versions that the key had before, the newest first. */
  history(tenant: string, factId: string): Promise<readonly Fact[]>;
  /** The current version of a fact; null: forgotten. */
  current(tenant: string, factId: string): Promise<Fact | null>;
  /** Current facts, the newest first. */
  list(tenant: string, query: FactQuery): Promise<{ readonly facts: readonly Fact[]; readonly next: string | null }>;
  /** Keeps a fact, or lets it be forgotten again; null: not found. */
  pin(tenant: string, factId: string, isPinned: boolean): Promise<Fact | null>;
  /** Deletes facts with their history; returns how many existed. */
  forget(tenant: string, factIds: readonly string[]): Promise<number>;
  /** Records that a prompt had these facts; ids of other records are ignored. */
  noteUses(tenant: string, ids: readonly string[]): Promise<void>;
  /**
   * Before an erasure: a current fact among the erased records becomes the newest version that remains. Returns the ids that
   * must not be deleted any more. A crash before the deletion is repeated with the same result.
   */
  replaceErased(tenant: string, erasedIds: ReadonlySet<string>, factKeys: Iterable<string>): Promise<ReadonlySet<string>>; // prettier-ignore
}

export interface FactQuery {
  /** Null: requests without a user. Default: all users of the tenant. */
  readonly userId?: string | null;
  readonly limit: number;
  readonly after?: string;
}

export interface FactsContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  embed(text: string): Promise<EmbeddedText | null>;
}

/** Versions of a key that are kept. */
const MAX_HISTORY = 64;
const OURS: FieldCondition = { field: 'source', is: '=', value: AGENT_SOURCE };

/** Whether `a` was said after `b`. Never equal for two statements, so that every order of arrival has the same result. */
function isNewer(a: StoredFact, b: StoredFact): boolean {
  if (a.saidMs !== b.saidMs) return a.saidMs > b.saidMs;
  if (a.episodeId !== b.episodeId) return a.episodeId > b.episodeId;
  return a.order > b.order;
}

export function createFacts({ store, services, embed }: FactsContext): Facts {
  const versionId = (tenant: string, { factKey, episodeId, order }: StoredFact): string =>
    nameId(services.sha256, tenant, 'agent-fact-version', factKey, episodeId, String(order));
  const toVersion = (tenant: string, fact: StoredFact) =>
    factToRecord({ ...fact, id: versionId(tenant, fact), isCurrent: false, isPinned: false }, tenant, null);

  async function read(tenant: string, id: string): Promise<MemoryRecord | null> {
    const [record] = await store.get(tenant, [id]);
    return record != null && isAgentFact(record) ? record : null;
  }

  /** Moved towards subject and attribute: questions ask for them, and the names in values outweigh all else. */
  async function embedFact(statement: Statement): Promise<EmbeddedText | null> {
    const [whole, asked] = await Promise.all([embed(factText(statement)), embed(`${statement.subject} ${statement.attribute}`)]); // prettier-ignore
    if (whole === null || asked === null) return whole;
    const sum = whole.vector.map((value, i) => value + asked.vector[i]!);
    const length = Math.hypot(...sum);
    return length === 0 ? whole : { vector: sum.map((value) => value / length), space: whole.space };
  }

  const versionFilter = (factKey: string, isCurrent: boolean) => ({
    fields: [OURS, { field: 'factKey', is: '=', value: factKey }, { field: 'isCurrent', is: '=', value: isCurrent }] as FieldCondition[], // prettier-ignore
  });

  async function versions(tenant: string, factKey: string): Promise<StoredFact[]> {
    const filter = versionFilter(factKey, false);
    const { records } = await store.find(tenant, { kinds: ['fact'], filter, order: 'newest', limit: 2 * MAX_HISTORY });
    return records.map(factFromRecord).sort((a, b) => (isNewer(a, b) ? -1 : 1));
  }

  async function trim(tenant: string, factKey: string): Promise<void> {
    const old = (await versions(tenant, factKey)).slice(MAX_HISTORY);
    if (old.length > 0) await store.delete(tenant, old.map(({ id }) => id)); // prettier-ignore
  }

  /** Changes a current fact without a new version of it. */
  async function change(
    tenant: string,
    id: string,
    changed: (fact: StoredFact) => Partial<StoredFact>,
  ): Promise<Fact | null> {
    return retryConflict(async () => {
      const record = await read(tenant, id);
      if (record === null) return null;
      const fact = factFromRecord(record);
      if (!fact.isCurrent) return null;
      const next = { ...fact, ...changed(fact) };
      const embedded = record.vector === null ? null : { vector: record.vector, space: record.space! };
      await store.put([{ ...factToRecord(next, tenant, embedded), ifVersion: record.version }]);
      return next;
    });
  }

  return {
    async assert(scope, given, source, order = 0) {
      const statement = parseStatement(given);
      const { tenant, userId } = scope;
      const { speaker, speakerName, sessionId, turn, requestId, saidMs, id: episodeId } = source;
      const factKey = factIdOf(services.sha256, scope, source, statement);
      const provenance = { speaker, speakerName, sessionId, turn, requestId, saidMs, episodeId, order };
      const life = { isCurrent: true, isPinned: false, numUses: 0, usedMs: [] };
      const fact: StoredFact = { id: factKey, factKey, userId, ...statement, ...provenance, ...life };
      const embedded = await embedFact(statement);
      return retryConflict(async () => {
        const record = await read(tenant, factKey);
        if (record === null) {
          await store.put([{ ...factToRecord(fact, tenant, embedded), ifVersion: 0 }]);
          return { outcome: 'new', fact };
        }
        const known = factFromRecord(record);
        if (known.episodeId === episodeId && known.order === order) return { outcome: 'same', fact: known };
        const isDenial = statement.polarity === 'is not' && known.polarity === 'is';
        if (isDenial && !isSet(statement.attribute) && !sameValue(statement.value, known.value)) {
          return { outcome: 'agrees', fact: known };
        }
        if (!isNewer(fact, known)) {
          const version = toVersion(tenant, fact);
          if ((await store.get(tenant, [version.id]))[0] != null) return { outcome: 'same', fact: known };
          await store.put([version]);
          return { outcome: 'older', fact: known };
        }
        const next = { ...fact, isPinned: known.isPinned };
        // In one call: a crash must not leave two current facts, or none.
        await store.put([
          { ...factToRecord(next, tenant, embedded), ifVersion: record.version },
          toVersion(tenant, known),
        ]);
        await trim(tenant, factKey);
        return { outcome: 'replaced', fact: next };
      });
    },
    async get(tenant, id) {
      const record = await read(tenant, id);
      return record === null ? null : factFromRecord(record);
    },
    history: async (tenant, factId) => {
      const record = await read(tenant, factId);
      return record === null ? [] : versions(tenant, factFromRecord(record).factKey);
    },
    async current(tenant, factId) {
      const record = await read(tenant, factId);
      const head = record === null ? null : await read(tenant, factFromRecord(record).factKey);
      return head === null ? null : factFromRecord(head);
    },
    async list(tenant, { userId, limit, after }) {
      const fields: FieldCondition[] = [OURS, { field: 'isCurrent', is: '=', value: true }];
      if (userId !== undefined) fields.push({ field: 'userId', is: '=', value: userId });
      const more = after === undefined ? {} : { after };
      const page = await store.find(tenant, { kinds: ['fact'], filter: { fields }, order: 'newest', limit, ...more });
      return { facts: page.records.map(factFromRecord), next: page.next };
    },
    pin: (tenant, factId, isPinned) => change(tenant, factId, () => ({ isPinned })),
    async forget(tenant, factIds) {
      let numForgotten = 0;
      for (const id of factIds) {
        const record = await read(tenant, id);
        if (record === null) continue;
        const { factKey } = factFromRecord(record);
        const old = await versions(tenant, factKey);
        await store.delete(tenant, [...old.map((one) => one.id), factKey]);
        numForgotten++;
      }
      return numForgotten;
    },
    async noteUses(tenant, ids) {
      const nowMs = Math.floor(services.now());
      for (const id of ids) {
        await change(tenant, id, ({ numUses, usedMs, saidMs }) => ({
          numUses: numUses + 1,
          // The newest first, also if the clock goes back.
          usedMs: [Math.max(nowMs, usedMs[0] ?? 0, saidMs), ...usedMs].slice(0, MAX_USES),
        }));
      }
    },
    async replaceErased(tenant, erasedIds, factKeys) {
      const kept = new Set<string>();
      for (const factKey of factKeys) {
        const record = erasedIds.has(factKey) ? await read(tenant, factKey) : null;
        const newest = record === null ? undefined : (await versions(tenant, factKey)).find(({ id }) => !erasedIds.has(id)); // prettier-ignore
        if (record === null || newest === undefined) continue;
        const { isPinned } = factFromRecord(record);
        const next = { ...newest, id: factKey, isCurrent: true, isPinned };
        const put = factToRecord(next, tenant, await embedFact(newest));
        await store.put([{ ...put, ifVersion: record.version }]);
        await store.delete(tenant, [newest.id]);
        kept.add(factKey);
      }
      return kept;
    },
  };
}
