import { covers, type DataOwner, type ErasureSubject } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { divideText } from '../common/divide-text.ts';
import { nameId } from '../common/ids.ts';
import type { MemoryServices } from '../common/services.ts';
import { readPages, statePut } from '../common/store-access.ts';
import type { JsonValue, MemoryRecord, MemoryStore } from '../types.ts';

/** The small part of a stored object: read for all objects of a tenant at once. */
export interface StoredHead {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
  /** The requests that the object contains and their users, by which it is erased. */
  readonly owners: readonly Omit<DataOwner, 'tenant'>[];
  /** Further data of the caller. */
  readonly about: JsonValue;
}

/** Objects that clients store on the server: a small head and a text of any length, both sealed like every record. */
export interface StoredRecords {
  /** Tenants with data; some may have no objects. */
  tenants(): readonly string[];
  /** The heads of all objects of a tenant, the least recently written first. Expired and unreadable ones are left out. */
  heads(tenant: string): Promise<readonly StoredHead[]>;
  /** The head and text of an object; null: not found or expired. */
  read(tenant: string, id: string): Promise<{ readonly head: StoredHead; readonly text: string } | null>;
  /** Replaces an object of the same id. */
  put(tenant: string, head: StoredHead, text: string): Promise<void>;
  delete(tenant: string, ids: readonly string[]): Promise<void>;
}

interface StoredContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly tenants: { all(): readonly string[]; add(tenant: string): Promise<void> };
}

const HEAD_NAME = 'stored-object';
const PART_NAME = 'stored-object-part';
const PAGE = 500;

export function createStoredRecords({ store, services, tenants }: StoredContext): StoredRecords {
  const headIdOf = (tenant: string, id: string): string => nameId(services.sha256, tenant, HEAD_NAME, id);
  const partIdOf = (tenant: string, id: string, part: number): string =>
    nameId(services.sha256, tenant, PART_NAME, id, String(part));
  const isCurrent = ({ expiresMs }: StoredHead): boolean => expiresMs > services.now();

  async function read(tenant: string, id: string): ReturnType<StoredRecords['read']> {
    const headId = headIdOf(tenant, id);
    const [record, first] = await store.get(tenant, [headId, partIdOf(tenant, id, 0)]);
    const stored = record == null ? null : parseHead(record.body);
    if (stored === null || first == null || !isCurrent(stored.head)) return null;
    if (stored.partIds.length === 1) return { head: stored.head, text: textOf(first) };
    const [now, ...others] = await store.get(tenant, [headId, ...stored.partIds.slice(1)]);
    // Replaced or deleted meanwhile.
    if (now?.version !== record!.version) return read(tenant, id);
    return { head: stored.head, text: [first, ...others].map(textOf).join('') };
  }

  return {
    tenants: tenants.all,
    async heads(tenant) {
      const heads: { readonly head: StoredHead; readonly updatedMs: number }[] = [];
      for await (const { head, updatedMs } of readHeads(store, tenant)) {
        if (isCurrent(head)) heads.push({ head, updatedMs });
      }
      return heads.sort((a, b) => a.updatedMs - b.updatedMs).map(({ head }) => head);
    },
    read,
    async put(tenant, head, text) {
      await tenants.add(tenant);
      const headId = headIdOf(tenant, head.id);
      const [old] = await store.get(tenant, [headId]);
      const texts = divideText(text);
      // Parts of a longer earlier text are emptied in the same call, so that no text is left behind.
      const numParts = Math.max(texts.length, (old == null ? null : parseHead(old.body))?.partIds.length ?? 0);
      const partIds = Array.from({ length: numParts }, (_, part) => partIdOf(tenant, head.id, part));
      const place = { tenant, expiresMs: head.expiresMs };
      await store.put([
        statePut({ ...place, id: headId }, { ...head, partIds }, { name: HEAD_NAME }),
        ...partIds.map((id, part) => statePut({ ...place, id }, { text: texts[part] ?? '' }, { name: PART_NAME })),
      ]);
    },
    async delete(tenant, ids) {
      for (const id of ids) {
        const headId = headIdOf(tenant, id);
        const [record] = await store.get(tenant, [headId]);
        const partIds = (record == null ? null : parseHead(record.body))?.partIds ?? [];
        await store.delete(tenant, [...partIds, headId]);
      }
    },
  };
}

/** The records of objects that contain a request of a user, or one of these requests. */
export async function* storedRecordsOf(store: MemoryStore, subject: ErasureSubject): AsyncGenerator<readonly string[]> {
  const { tenant } = subject;
  for await (const { recordId, head, partIds } of readHeads(store, tenant)) {
    if (head.owners.some((owner) => covers(subject, { tenant, ...owner }))) yield [...partIds, recordId];
  }
}

async function* readHeads(store: MemoryStore, tenant: string) {
  const filter = { fields: [{ field: 'name', is: '=', value: HEAD_NAME }] } as const;
  for await (const page of readPages(store, tenant, { kinds: ['state'], filter, order: 'oldest' }, PAGE)) {
    for (const { id, body, updatedMs } of page) {
      const stored = parseHead(body);
      if (stored !== null) yield { ...stored, recordId: id, updatedMs };
    }
  }
}

function textOf(part: MemoryRecord | null | undefined): string {
  const { text } = (part?.body ?? {}) as { readonly text?: unknown };
  if (typeof text === 'string') return text;
  throw new RuvLLMError('io', 'the memory is damaged: a part of a stored object has no text');
}

/** Null: not written by this version. */
function parseHead(body: JsonValue): { readonly head: StoredHead; readonly partIds: readonly string[] } | null {
  const { id, expiresMs, owners, about, partIds } = (body ?? {}) as Partial<StoredHead & { partIds: string[] }>;
  const isWhole = typeof id === 'string' && typeof expiresMs === 'number' && Array.isArray(owners);
  if (!isWhole || about === undefined || !Array.isArray(partIds)) return null;
  return { head: { id, expiresMs, owners, about }, partIds: partIds as string[] };
}
