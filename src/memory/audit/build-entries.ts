import { RuvLLMError } from '../../core/errors.ts';
import type { BuiltRecords } from '../built-records.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import type { MemoryServices, Sha256 } from '../common/services.ts';
import { auditBody, auditToRecord, type AuditEntry, type AuditInput, type LinkedEntry } from '../schemas/audit.ts';
import type { JsonValue, PutRecord } from '../types.ts';
import { entryBytes, hashLink, hashVector } from './chain.ts';
import { headPut, type ChainHead, type StoredHead } from './head.ts';
import { toAuditEntry } from './repair.ts';

/** An entry on its way into the chain. */
export interface PreparedEntry {
  /** The same in every attempt, which reveals a write that succeeded although it seemed to fail. */
  readonly id: string;
  readonly entry: AuditEntry;
  readonly body: JsonValue;
  /** Entries dropped between the previous one and this one. */
  readonly numDroppedBefore: number;
}

/** Entries of one tenant and their place in its chain. */
export interface ChainBatch<Item> {
  readonly tenant: string;
  readonly runId: string;
  readonly items: readonly Item[];
}

/** Entries as they were enqueued. */
export interface AuditBatch extends ChainBatch<Omit<PreparedEntry, 'entry' | 'body'> & { readonly input: AuditInput }> {
  readonly nowMs: number;
  readonly last: StoredHead;
  /** Further records of the same call. */
  readonly alongside: readonly PutRecord[];
}

export interface AppendedEntries {
  readonly head: ChainHead;
  readonly links: readonly Pick<LinkedEntry, 'createdMs' | 'link'>[];
  /** Entries that were changed; null: as enqueued. */
  readonly repaired: readonly (AuditEntry | null)[];
}

export function prepareEntry({ newId }: Pick<MemoryServices, 'newId'>, entry: AuditEntry, id = newId()): PreparedEntry {
  return { id, entry, body: auditBody(entry), numDroppedBefore: 0 };
}

export function extendChain(
  sha256: Sha256,
  nowMs: number,
  { head, version }: StoredHead,
  batch: ChainBatch<PreparedEntry>,
): { readonly head: ChainHead; readonly linked: readonly LinkedEntry[]; readonly records: readonly PutRecord[] } {
  const { tenant, runId, items } = batch;
  // The clock may go back; the chain must not.
  const createdMs = Math.max(head.lastMs, Math.floor(nowMs));
  let { sequence, hash, liveBytes, numDropped } = head;
  const linked = items.map(({ id, entry, body, numDroppedBefore }) => {
    const vectorHash = hashVector(sha256, entry.queryEmbedding);
    const open = { sequence: ++sequence, runId, numDroppedBefore, previousHash: hash, vectorHash };
    const text = canonicalJson(body);
    hash = hashLink(sha256, { id, createdMs, body }, open, text);
    numDropped += numDroppedBefore;
    liveBytes += entryBytes(body, entry.queryEmbedding?.length ?? 0, text);
    return { id, createdMs, entry, link: { ...open, hash } };
  });
  const next = { ...head, sequence, hash, liveBytes, numDropped, lastMs: createdMs };
  const entries = linked.map((one, i) => ({ ...auditToRecord(one, items[i]!.body, tenant), ifVersion: 0 }));
  return { head: next, linked, records: [...entries, headPut(sha256, tenant, next, version)] };
}

function checkEntry(input: AuditInput): AuditEntry {
  try {
    return toAuditEntry(input);
  } catch (cause) {
    throw new RuvLLMError('invalid_option', 'an audit entry is invalid', { cause });
  }
}

/** Throws `invalid_option` for an entry that cannot be repaired. */
export function buildEntries(batch: AuditBatch, sha256: Sha256): BuiltRecords<AppendedEntries> {
  const { items, nowMs, last, alongside } = batch;
  const prepared = items.map(({ id, input, numDroppedBefore }) => {
    const entry = checkEntry(input);
    return { id, entry, body: auditBody(entry), numDroppedBefore };
  });
  const { head, linked, records } = extendChain(sha256, nowMs, last, { ...batch, items: prepared });
  return {
    records: [...records, ...alongside],
    result: {
      head,
      links: linked.map(({ createdMs, link }) => ({ createdMs, link })),
      repaired: prepared.map(({ entry }) => (entry.repairs.length === 0 ? null : entry)),
    },
  };
}
