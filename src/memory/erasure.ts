import {
  createErasureRegistry,
  isWholeTenant,
  type ErasurePart,
  type ErasureRegistry,
  type ErasureReport,
  type ErasureSubject,
  type ErasureTarget,
} from '../core/erasure.ts';
import type { Facts } from './agents/facts.ts';
import type { AuditArchive, AuditLog } from './audit/index.ts';
import { readManifests } from './audit/archive.ts';
import { nameId } from './common/ids.ts';
import type { MemoryServices } from './common/services.ts';
import { readPages, statePut } from './common/store-access.ts';
import { MEMORY_FIELDS } from './fields.ts';
import { turnFromRecord } from './schemas/session.ts';
import { trajectoryFromRecord } from './schemas/trajectory.ts';
import type { SessionIndex } from './sessions/sessions.ts';
import { storedRecordsOf } from './stored/stored-records.ts';
import type { WriteLocks } from './watched-store.ts';
import { AUDIT_KIND, RECORD_KINDS, type FieldCondition, type MemoryStore, type RecordKind } from './types.ts';
import { messageOf } from '../core/errors.ts';

/** Erases tenants, users and requests with all registered parts; an interrupted erasure is completed by `resume`. */
export interface Erasure extends Omit<ErasureRegistry, 'run'> {
  /** Registers a part on disk that later processes must erase too, even if they do not use it; its name is stored. */
  addPlace(part: ErasurePart): Promise<void>;
  /** Names of the parts that this and earlier processes added. */
  places(): Promise<readonly string[]>;
  erase(target: ErasureTarget): Promise<ErasureReport>;
  /** Completes erasures that a crash or a failing part left open. Call it once all parts are registered. */
  resume(): Promise<void>;
}

export interface ErasureContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly archive: AuditArchive | null;
  readonly audit: AuditLog;
  readonly stateTenant: string;
  /** Writes of a tenant are refused from its erasure in the store until its proof. */
  readonly locks: WriteLocks;
  readonly sessions: () => SessionIndex;
  readonly facts: Pick<Facts, 'replaceErased'>;
  /** Called after data of a tenant was erased, to drop caches. */
  dropCaches(tenant: string): void;
  /** The tenants with data. */
  readonly tenants: { all(): readonly string[]; remove(tenant: string): Promise<void> };
  readonly report: (message: string) => void;
}

/** Erasures that were started and not completed. */
const NOTE_NAME = 'erasure';
const PLACES_NAME = 'erasure-places';
const PAGE = 500;

/** The kinds whose records can be found by this field; audit entries are erased by their log. */
const kindsWith = (field: 'userId' | 'requestId' | 'sessionId'): RecordKind[] =>
  RECORD_KINDS.filter((kind) => kind !== AUDIT_KIND && field in MEMORY_FIELDS[kind]);

export function createErasure(context: ErasureContext): Erasure {
  const { store, services, audit, stateTenant, locks, report } = context;
  const registry = createErasureRegistry();
  registry.register(createMemoryPart(context));

  const placesId = nameId(services.sha256, stateTenant, PLACES_NAME);
  async function places(): Promise<readonly string[]> {
    const [record] = await store.get(stateTenant, [placesId]);
    return (record?.body as { readonly names?: readonly string[] } | undefined)?.names ?? [];
  }

  /** Finds the requests and sessions of a user, or the session of a request. */
  async function resolve({ tenant, userId = null, requestId = null }: ErasureTarget): Promise<ErasureSubject> {
    const requestIds = new Set<string>(requestId === null ? [] : [requestId]);
    const sessionIds = new Set<string>();
    const quotingIds = new Set<string>();
    const subject = { tenant, userId, requestId, requestIds, sessionIds, quotingIds };
    if (isWholeTenant(subject)) return subject;
    const recordIds = new Set<string>();
    for await (const { id, fields } of ownedRecords(store, subject)) {
      recordIds.add(id);
      if (userId !== null && typeof fields['requestId'] === 'string') requestIds.add(fields['requestId']);
      if (typeof fields['sessionId'] === 'string') sessionIds.add(fields['sessionId']);
    }
    for await (const entry of audit.owned(tenant, subject)) {
      if (userId !== null) requestIds.add(entry.requestId);
      if (entry.sessionId !== null) sessionIds.add(entry.sessionId);
    }
    for await (const turn of turnsIn(store, subject)) recordIds.add(turn.id);
    for await (const id of quotingRequests(store, subject, recordIds)) quotingIds.add(id);
    return subject;
  }

  async function erase(target: ErasureTarget): Promise<ErasureReport> {
    const { tenant, userId = null, requestId = null } = target;
    const id = nameId(services.sha256, stateTenant, NOTE_NAME, tenant, userId ?? '', requestId ?? '');
    // First: from here on the erasure will be completed, if not by this process then by the next.
    await store.put([statePut({ id, tenant: stateTenant }, { tenant, userId, requestId }, { name: NOTE_NAME })]);
    try {
      const erased = await registry.run(await resolve(target));
      await store.delete(stateTenant, [id]);
      return erased;
    } finally {
      locks.delete(tenant);
    }
  }

  return {
    register: registry.register,
    has: registry.has,
    isErasing: registry.isErasing,
    erase,
    places,
    async addPlace(part) {
      if (!registry.has(part.name)) registry.register(part);
      const names = await places();
      if (names.includes(part.name)) return;
      await store.put([statePut({ id: placesId, tenant: stateTenant }, { names: [...names, part.name] })]);
    },
    async resume() {
      const filter = { fields: [{ field: 'name', is: '=', value: NOTE_NAME }] } as const;
      const { records } = await store.find(stateTenant, { kinds: ['state'], filter, order: 'oldest', limit: PAGE });
      for (const { body } of records) {
        await erase(body as unknown as ErasureTarget).catch((error: unknown) =>
          report(`completing an erasure failed: ${messageOf(error)}`),
        );
      }
    },
  };
}

/** Records of a user or request, except audit entries. */
async function* ownedRecords(store: MemoryStore, { tenant, userId, requestIds, quotingIds }: ErasureSubject) {
  const queries: { kinds: RecordKind[]; condition: FieldCondition }[] = [];
  const named = (kinds: RecordKind[], ids: readonly string[]): void => {
    for (let from = 0; from < ids.length; from += PAGE) {
      queries.push({ kinds, condition: { field: 'requestId', is: 'in', values: ids.slice(from, from + PAGE) } });
    }
  };
  named(kindsWith('requestId'), [...requestIds]);
  named(['trajectory'], [...quotingIds]);
  if (userId !== null)
    queries.push({ kinds: kindsWith('userId'), condition: { field: 'userId', is: '=', value: userId } });
  for (const { kinds, condition } of queries) {
    const query = { kinds, filter: { fields: [condition] }, order: 'oldest' } as const;
    for await (const page of readPages(store, tenant, query, PAGE)) yield* page;
  }
}

/** Turns of the subject's requests. Older versions wrote them without the field of the request. */
async function* turnsIn(store: MemoryStore, { tenant, requestIds, sessionIds }: ErasureSubject) {
  for (const sessionId of sessionIds) {
    const filter = { fields: [{ field: 'sessionId', is: '=', value: sessionId }] } as const;
    for await (const page of readPages(store, tenant, { kinds: ['qa-pair'], filter, order: 'oldest' }, PAGE)) {
      for (const record of page) {
        const { id, requestId } = turnFromRecord(record);
        if (requestId !== null && requestIds.has(requestId)) yield { id, sessionId };
      }
    }
  }
}

/** Requests of others that recalled erased records, or whose conversation continues an erased request. */
async function* quotingRequests(
  store: MemoryStore,
  { tenant, requestIds, requestId }: ErasureSubject,
  recordIds: ReadonlySet<string>,
): AsyncGenerator<string> {
  const query = { kinds: ['trajectory'], order: 'oldest' } as const;
  const filter = { fields: [{ field: 'requestId', is: '=', value: requestId }] } as const;
  const [erased] = requestId === null ? [] : (await store.find(tenant, { ...query, filter, limit: 1 })).records;
  const asked = erased === undefined ? null : trajectoryFromRecord(erased).query;
  for await (const page of readPages(store, tenant, query, PAGE)) {
    for (const record of page) {
      const one = trajectoryFromRecord(record);
      if (requestIds.has(one.requestId)) continue;
      const isContinued = typeof one.prompt === 'object' && one.prompt?.some(({ content }) => content === asked);
      if (isContinued || one.retrieved.some(({ id }) => recordIds.has(id))) yield one.requestId;
    }
  }
}

/** The store, the audit log and its archive, sessions, stored objects and policies. */
function createMemoryPart(context: ErasureContext): ErasurePart {
  const { store, archive, audit, tenants, sessions, facts, locks } = context;

  async function eraseTenant(tenant: string): Promise<void> {
    await audit.flush().catch(() => {}); // queued entries would be written after the erasure
    // Before their manifests. An interrupted erasure may have destroyed the key already; then nothing opens them any more.
    const segments = archive === null ? [] : await readManifests(store, tenant).catch(() => []);
    for (const { manifest } of segments) await archive!.delete(manifest.file);
    locks.add(tenant);
    await store.eraseTenant(tenant);
    await tenants.remove(tenant);
  }

  async function eraseOwned(subject: ErasureSubject): Promise<void> {
    const { tenant } = subject;
    await audit.erase(tenant, subject);
    const [ids, sessionIds, factKeys] = [[] as string[], new Set<string>(), new Set<string>()];
    for await (const { id, kind, fields } of ownedRecords(store, subject)) {
      if (typeof fields['factKey'] === 'string') factKeys.add(fields['factKey']);
      if (kind === 'session') await sessions().remove(tenant, String(fields['sessionId']));
      else ids.push(id);
    }
    for await (const turn of turnsIn(store, subject)) {
      ids.push(turn.id);
      sessionIds.add(turn.sessionId);
    }
    for await (const recordIds of storedRecordsOf(store, subject)) ids.push(...recordIds);
    // The value before an erased one counts again.
    const kept = await facts.replaceErased(tenant, new Set(ids), factKeys);
    const gone = ids.filter((id) => !kept.has(id));
    for (let from = 0; from < gone.length; from += PAGE) await store.delete(tenant, gone.slice(from, from + PAGE));
    for (const sessionId of sessionIds) {
      // The embedding may be that of an erased turn.
      if ((await sessions().get(tenant, sessionId)) === null) continue;
      await sessions().touch(tenant, sessionId, { contextEmbedding: null, space: null });
    }
  }

  return {
    name: 'memory',
    async erase(subject) {
      try {
        await (isWholeTenant(subject) ? eraseTenant(subject.tenant) : eraseOwned(subject));
      } finally {
        context.dropCaches(subject.tenant);
      }
    },
    async count(subject) {
      const { tenant } = subject;
      if (isWholeTenant(subject)) {
        const { numRecords, numEdges } = await store.stats(tenant);
        const numListed = tenants.all().filter((one) => one === tenant).length;
        return Object.values(numRecords).reduce((sum, count) => sum + count, numEdges + numListed);
      }
      let numOwned = 0;
      for await (const _ of ownedRecords(store, subject)) numOwned++;
      for await (const _ of turnsIn(store, subject)) numOwned++;
      for await (const _ of audit.owned(tenant, subject)) numOwned++;
      for await (const _ of storedRecordsOf(store, subject)) numOwned++;
      return numOwned;
    },
  };
}
