import { createLruMap } from '../common/lru-map.ts';
import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import { auditBody, auditToRecord, type LinkedEntry, type AuditEntry } from '../schemas/audit.ts';
import type { JsonValue, MemoryStore, PutRecord } from '../types.ts';
import { entryBytes, hashLink, hashVector } from './chain.ts';
import { headPut, readHead, type ChainHead, type StoredHead } from './head.ts';

/** Chain heads kept in memory. */
const MAX_HEADS = 1000;

/** An entry on its way into the chain. */
export interface PreparedEntry {
  /** The same in every attempt, which reveals a write that succeeded although it seemed to fail. */
  readonly id: string;
  readonly entry: AuditEntry;
  readonly body: JsonValue;
  /** Entries dropped between the previous one and this one. */
  readonly numDroppedBefore: number;
}

interface AppendBatch {
  readonly tenant: string;
  readonly runId: string;
  readonly items: readonly PreparedEntry[];
  /** Further records of the same call, read again when it is repeated. */
  alongside(isRepeated: boolean): Promise<readonly PutRecord[]>;
}

export function prepareEntry(services: MemoryServices, entry: AuditEntry): PreparedEntry {
  return { id: services.newId(), entry, body: auditBody(entry), numDroppedBefore: 0 };
}

function extend(
  services: MemoryServices,
  head: ChainHead,
  batch: AppendBatch,
): { head: ChainHead; linked: LinkedEntry[] } {
  const { sha256 } = services;
  // The clock may go back; the chain must not.
  const createdMs = Math.max(head.lastMs, Math.floor(services.now()));
  let { sequence, hash, liveBytes, numDropped } = head;
  const linked = batch.items.map(({ id, entry, body, numDroppedBefore }) => {
    const vectorHash = hashVector(sha256, entry.queryEmbedding);
    const open = { sequence: ++sequence, runId: batch.runId, numDroppedBefore, previousHash: hash, vectorHash };
    hash = hashLink(sha256, { id, createdMs, body }, open);
    numDropped += numDroppedBefore;
    liveBytes += entryBytes(body, entry.queryEmbedding?.length ?? 0);
    return { id, createdMs, entry, link: { ...open, hash } };
  });
  return { head: { ...head, sequence, hash, liveBytes, numDropped, lastMs: createdMs }, linked };
}

/** Appends to the chains of tenants; entries, head and `alongside` are written in one call. */
export function createAppender(store: MemoryStore, services: MemoryServices) {
  const heads = createLruMap<StoredHead>(MAX_HEADS);
  const attempt = async (batch: AppendBatch, isRepeated: boolean): Promise<LinkedEntry[]> => {
    const { tenant, items } = batch;
    const known = isRepeated ? undefined : heads.get(tenant);
    const { head, version } = known ?? (await readHead(store, services.sha256, tenant));
    const next = extend(services, head, batch);
    const entries = next.linked.map((linked, index) => ({
      ...auditToRecord(linked, items[index]!.body, tenant),
      ifVersion: 0,
    }));
    await store.put([
      ...entries,
      headPut(services.sha256, tenant, next.head, version),
      ...(await batch.alongside(isRepeated)),
    ]);
    heads.set(tenant, { head: next.head, version: version + 1 });
    return next.linked;
  };
  return {
    /** Returns the entries it wrote, without those that an earlier attempt wrote although it seemed to fail. */
    async append(batch: AppendBatch): Promise<readonly LinkedEntry[]> {
      try {
        return await retryConflict(async (numTries) => {
          if (numTries === 0) return attempt(batch, false);
          const ids = batch.items.map(({ id }) => id);
          const there = await store.get(batch.tenant, ids);
          const items = batch.items.filter((_, index) => there[index] === null);
          return items.length === 0 ? [] : attempt({ ...batch, items }, true);
        });
      } catch (error) {
        // The store's state is unknown: the next batch reads the head again.
        heads.delete(batch.tenant);
        throw error;
      }
    },
  };
}
