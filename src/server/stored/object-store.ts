import type { Clock } from '../../core/clock.ts';
import { covers, type DataOwner, type ErasurePart, type ErasureSubject } from '../../core/erasure.ts';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { StoredRecords } from '../../runtime/lower-layers.ts';
import type { ServerLimits } from '../limits.ts';
import { createTenantIndex, entryOf, type IndexEntry, type TenantIndex, toHead } from './tenant-index.ts';
import type { StoredContents, StoredEntry, StoredObject, StoredType } from './types.ts';

/** Responses, conversations and chat completions of each tenant. */
export interface ObjectStore {
  /**
   * Stores an object, evicting the oldest. It can be found at once; the promise resolves when it is written. False: it is
   * larger than the limit and not stored.
   */
  put(tenant: string, object: StoredObject): Promise<boolean>;
  /** Null: unknown, evicted, expired, of another type or of another tenant. */
  find<T extends StoredType>(tenant: string, type: T, id: string): Promise<StoredObject<T> | null>;
  /** Unordered. */
  list(tenant: string, type: StoredType): Promise<readonly StoredEntry[]>;
  /** Changes an object, one change at a time. Null: not found. `limit_exceeded`: it would be too large. */
  update<T extends StoredType>(
    tenant: string,
    type: T,
    id: string,
    change: (object: StoredObject<T>) => StoredObject<T>,
  ): Promise<StoredObject<T> | null>;
  /** False: not found. */
  delete(tenant: string, type: StoredType, id: string): Promise<boolean>;
  readonly numBytes: number;
  /** Forgets a tenant's objects, or those that contain a request of the subject; the memory erases their records. */
  readonly erasure: ErasurePart;
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

export interface ObjectStoreContext {
  readonly limits: Pick<
    ServerLimits,
    'maxStoredResponses' | 'maxStoredBytes' | 'maxStoredBytesInAll' | 'storedResponseMs'
  >;
  readonly clock: Clock;
  readonly records: StoredRecords;
  /** Whether other processes write the records, too. Default false. */
  readonly isShared?: boolean;
  /** Whether data of this owner must not be written. Default: never. */
  isErasing?(owner: DataOwner): boolean;
  /** Called with errors from background work. */
  report(message: string): void;
}

/** Bytes of an object besides its text. */
const OVERHEAD_BYTES = 256;
/** After this time the limits count again what other processes have written. */
const SHARED_READ_MS = 60_000;

export function createObjectStore(context: ObjectStoreContext): ObjectStore {
  const { clock, records, isShared = false, isErasing = () => false, report } = context;
  const { maxStoredResponses, maxStoredBytes, maxStoredBytesInAll, storedResponseMs } = context.limits;
  const indexes = new Map<string, TenantIndex>();
  /** Objects that are being written, by tenant and id. */
  const unwritten = new Map<string, Map<string, { readonly entry: IndexEntry; readonly text: string }>>();
  /** Writes of a tenant. */
  const writes = createSerialQueues();
  /** Reads with a change of one object. */
  const changes = createSerialQueues();
  const keyOf = (tenant: string, id: string): string => JSON.stringify([tenant, id]);
  const numBytesInAll = (): number => [...indexes.values()].reduce((sum, { numBytes }) => sum + numBytes, 0);
  /** Tenants whose records could not be read. */
  const unread = new Set<string>();
  let isClosed = false;

  function obtainIndex(tenant: string): TenantIndex {
    const index = indexes.get(tenant) ?? createTenantIndex();
    indexes.set(tenant, index);
    return index;
  }

  /** The index, read again if other processes may have written since. In the queue of writes. */
  async function readIndex(tenant: string, maxAgeMs: number): Promise<TenantIndex> {
    const index = obtainIndex(tenant);
    if (index.readMs !== null && clock.now() - index.readMs < maxAgeMs) return index;
    const heads = await records.heads(tenant);
    index.reset(heads.flatMap((head) => entryOf(head) ?? []));
    index.readMs = clock.now();
    return index;
  }
  const putAgeMs = isShared ? SHARED_READ_MS : Infinity;

  /** Removes an object from the index at once and its records in the queue, after the writes before it. */
  function evict(tenant: string, index: TenantIndex, id: string): void {
    index.remove(id);
    void writes
      .run(tenant, async () => {
        if (!index.entries.has(id)) await records.delete(tenant, [id]);
        if (index.entries.size === 0 && indexes.get(tenant) === index) indexes.delete(tenant);
      })
      .catch((error: unknown) => reportFailure('deleting a stored object', error));
  }
  const evictOldest = (tenant: string, index: TenantIndex): void =>
    evict(tenant, index, index.entries.keys().next().value!);

  function evictExpired(): void {
    const nowMs = clock.wallClock();
    for (const [tenant, index] of indexes) {
      for (const [id, { expiresMs }] of index.entries) {
        if (expiresMs > nowMs) break;
        evict(tenant, index, id);
      }
    }
  }

  /** Evicts from the tenant with the most bytes, so that one tenant cannot displace the others. */
  function makeRoom(): void {
    while (numBytesInAll() > maxStoredBytesInAll) {
      let [largest] = indexes;
      for (const item of indexes) if (item[1].numBytes > largest![1].numBytes) largest = item;
      evictOldest(...largest!);
    }
  }

  function reportFailure(doing: string, error: unknown): void {
    report(`${doing} failed: ${messageOf(error)}`);
  }

  /** Once for a tenant, because every write reads its index again. */
  function reportUnread(tenant: string, error: unknown): TenantIndex {
    if (!unread.has(tenant)) reportFailure('reading stored objects', error);
    unread.add(tenant);
    return obtainIndex(tenant);
  }

  async function write(tenant: string, entry: IndexEntry, text: string): Promise<void> {
    if (entry.owners.some((owner) => isErasing({ tenant, ...owner }))) {
      throw new RuvLLMError('conflict', 'this object is being erased; try again', { isRetryable: true });
    }
    // Damaged records of other objects must not keep this one from being stored.
    const index = await readIndex(tenant, putAgeMs).catch((error: unknown) => reportUnread(tenant, error));
    evictExpired();
    index.add(entry);
    while (index.entries.size > maxStoredResponses || index.numBytes > maxStoredBytes) evictOldest(tenant, index);
    makeRoom();
    try {
      await records.put(tenant, toHead(entry), text);
    } catch (error) {
      index.readMs = null; // an earlier version may still be stored
      throw error;
    }
  }

  async function put(tenant: string, { content, ...object }: StoredObject): Promise<boolean> {
    const text = JSON.stringify(content);
    const { id } = object;
    // Two bytes per character, the most a string takes. Text of several objects counts in each.
    const numBytes = 2 * (text.length + JSON.stringify(object).length) + OVERHEAD_BYTES;
    if (numBytes > Math.min(maxStoredBytes, maxStoredBytesInAll) || maxStoredResponses === 0) return false;
    const one = { entry: { ...object, numBytes, expiresMs: clock.wallClock() + storedResponseMs }, text };
    const waiting = unwritten.get(tenant) ?? new Map<string, typeof one>();
    unwritten.set(tenant, waiting.set(id, one));
    return writes.run(tenant, async () => {
      try {
        // Otherwise deleted, or replaced by a later write.
        if (waiting.get(id) === one) await write(tenant, one.entry, text);
        return true;
      } finally {
        if (waiting.get(id) === one) waiting.delete(id);
        if (waiting.size === 0 && unwritten.get(tenant) === waiting) unwritten.delete(tenant);
      }
    });
  }

  async function findNow<T extends StoredType>(tenant: string, type: T, id: string): Promise<StoredObject<T> | null> {
    const waiting = unwritten.get(tenant)?.get(id);
    const index = indexes.get(tenant);
    const isGone = !isShared && index != null && index.readMs !== null && !index.entries.has(id);
    if (waiting === undefined && isGone) return null;
    const stored = waiting ?? (await readRecord(tenant, id));
    if (stored === null || stored.entry.type !== type) return null;
    const { numBytes: _, expiresMs: __, ...entry } = stored.entry;
    return { ...entry, type, content: parseContent<T>(id, stored.text) };
  }

  async function readRecord(tenant: string, id: string) {
    const record = await records.read(tenant, id);
    const entry = record === null ? null : entryOf(record.head);
    return entry === null ? null : { entry, text: record!.text };
  }

  const readFresh = (tenant: string): Promise<TenantIndex> => writes.run(tenant, () => readIndex(tenant, 0));
  const isOf = (subject: ErasureSubject, { owners }: IndexEntry): boolean =>
    owners.some((owner) => covers(subject, { tenant: subject.tenant, ...owner }));

  /** Counts the objects of earlier processes, one tenant after the other, while requests are served. */
  async function readAll(): Promise<void> {
    for (const tenant of records.tenants()) {
      if (isClosed) return;
      await writes
        .run(tenant, () => readIndex(tenant, Infinity))
        .catch((error: unknown) => reportUnread(tenant, error));
    }
    evictExpired();
    makeRoom();
  }
  const reading = readAll();

  return {
    put,
    // After the changes before it.
    find: (tenant, type, id) => changes.run(keyOf(tenant, id), () => findNow(tenant, type, id)),
    get numBytes() {
      return numBytesInAll();
    },
    async list(tenant, type) {
      const index = await writes.run(tenant, () => readIndex(tenant, isShared ? 0 : Infinity));
      const nowMs = clock.wallClock();
      return [...index.entries.values()].filter((entry) => entry.type === type && entry.expiresMs > nowMs);
    },
    update: (tenant, type, id, change) =>
      changes.run(keyOf(tenant, id), async () => {
        const object = await findNow(tenant, type, id);
        if (object === null) return null;
        const next = change(object);
        if (await put(tenant, next as StoredObject)) return next;
        throw new RuvLLMError('limit_exceeded', `${type} ${id} would have more than ${maxStoredBytes} bytes`);
      }),
    delete: (tenant, type, id) =>
      changes.run(keyOf(tenant, id), async () => {
        evictExpired();
        if ((await findNow(tenant, type, id)) === null) return false;
        unwritten.get(tenant)?.delete(id);
        await writes.run(tenant, async () => {
          indexes.get(tenant)?.remove(id);
          await records.delete(tenant, [id]);
        });
        return true;
      }),
    erasure: {
      name: 'stored objects',
      async erase({ tenant }) {
        // From here on writes of the subject are refused; those before are written, where the memory erases them.
        await changes.settle();
        await writes.settle();
        indexes.delete(tenant);
      },
      async count(subject) {
        const { entries } = await readFresh(subject.tenant);
        return [...entries.values()].filter((entry) => isOf(subject, entry)).length;
      },
    },
    async close() {
      isClosed = true;
      await reading;
      await changes.settle();
      await writes.settle();
    },
  };
}

function parseContent<T extends StoredType>(id: string, text: string): StoredContents[T] {
  try {
    return JSON.parse(text) as StoredContents[T];
  } catch (error) {
    throw new RuvLLMError('io', `the stored object ${id} is damaged`, { cause: error });
  }
}
