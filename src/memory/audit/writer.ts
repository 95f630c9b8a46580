import { RuvLLMError } from '../../core/errors.ts';
import { countAtOnce, type Foreground } from '../common/foreground.ts';
import { isConflict } from '../common/retry-conflict.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import { auditBody, type LinkedEntry } from '../schemas/audit.ts';
import type { MemoryStore } from '../types.ts';
import { createAppender } from './appender.ts';
import { prepareEntry, type PreparedEntry } from './build-entries.ts';
import { linkEntries } from './links.ts';
import type { ResolvedAuditLogOptions } from './options.ts';
import type { QueuedEntry, AuditQueue } from './queue.ts';
import { toAuditEntry } from './repair.ts';
import type { RunKeeper } from './runs.ts';

interface WriterContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly schedule: Schedule;
  readonly options: ResolvedAuditLogOptions;
  readonly queue: AuditQueue;
  readonly run: RunKeeper;
  readonly foreground: Foreground | null;
}

/** A part that takes longer is left out; sooner, if an entry would be late otherwise. */
const MAX_LATE_MS = 5000;
/** Share of `batchMs` after which an entry is not held up by late parts. */
const LATE_AFTER = 0.75;

interface Unlinked {
  readonly tenant: string;
  readonly linked: readonly LinkedEntry[];
}

/** Batches that may wait to be linked; older ones are not linked. */
const MAX_UNLINKED = 5000;

const isRefusal = (error: unknown): boolean => error instanceof RuvLLMError && error.code === 'invalid_option';

/** A store may refuse the vector (another length in the same space) of an otherwise valid entry. */
function withoutVector(prepared: PreparedEntry): PreparedEntry {
  const { entry } = prepared;
  const repairs = [...entry.repairs.slice(0, 15), 'queryEmbedding refused'];
  const changed = { ...entry, queryEmbedding: null, space: null, repairs };
  return { ...prepared, entry: changed, body: auditBody(changed) };
}

/** Moves entries from the queue into the store, batch by batch; not reentrant. */
export function createAuditWriter({ store, services, schedule, options, queue, run, foreground }: WriterContext) {
  const appender = createAppender(store, services);
  /** Refused since the last written entry, by tenant; the next entry records the number. */
  const refusedSince = new Map<string, number>();
  let numLinksFailed = 0;
  const unlinked: Unlinked[] = [];

  /** Computes late parts, with a time limit: an embedder may never answer. */
  async function awaitParts(items: readonly QueuedEntry[]): Promise<void> {
    const late = items.filter(({ later }) => later !== undefined);
    if (late.length === 0) return;
    let cancel = (): void => {};
    // An embedder that requests keep busy must not make entries older than `batchMs`.
    const leftMs = Math.min(...items.map(({ takenMs }) => takenMs)) + options.batchMs * LATE_AFTER - services.now();
    const waitMs = Math.min(MAX_LATE_MS, Math.max(0, leftMs));
    const tooLate = new Promise<null>((resolve) => (cancel = schedule(() => resolve(null), waitMs)));
    await Promise.all(
      late.map(async (item) => {
        const parts = await Promise.race([item.later!(), tooLate]).catch(() => null);
        if (parts !== null) item.input = { ...item.input, ...parts };
        delete item.later;
      }),
    );
    cancel();
  }

  const prepare = (item: QueuedEntry): PreparedEntry | null => {
    if (item.prepared === undefined) {
      try {
        item.prepared = prepareEntry(services, toAuditEntry(item.input), item.id);
      } catch {
        item.prepared = null;
      }
    }
    return item.prepared;
  };
  const append = async (tenant: string, items: readonly PreparedEntry[]): Promise<readonly LinkedEntry[]> => {
    const alongside = async (isRepeated: boolean) => [await run.toPut(items.length, isRepeated)];
    const linked = await appender.append({ tenant, runId: run.runId, items, alongside });
    run.wasWritten(items.length);
    return linked;
  };
  /** Entries are not prepared here; false: one by one, they must be. */
  const appendInputs = async (tenant: string, items: readonly QueuedEntry[]): Promise<boolean> => {
    let numBefore = refusedSince.get(tenant) ?? 0;
    const inputs = items.map((item) => {
      const numDroppedBefore = numBefore + item.numDroppedBefore;
      numBefore = 0;
      return { id: (item.id ??= services.newId()), input: item.input, numDroppedBefore };
    });
    try {
      const alongside = [await run.toPut(items.length, false)];
      const linked = await appender.appendInputs({ tenant, runId: run.runId, items: inputs, alongside });
      run.wasWritten(items.length);
      queue.remove(tenant, items.length);
      settle(tenant, 0, 0);
      linkLater(tenant, linked);
      return true;
    } catch (error) {
      if (isRefusal(error) || isConflict(error)) return false;
      queue.rotate(tenant);
      throw error;
    }
  };
  /** Records in each entry how many were dropped before it; `numLeft` belongs to the next entry after these. */
  const countDropped = (tenant: string, items: readonly QueuedEntry[]): { good: PreparedEntry[]; numLeft: number } => {
    let numLeft = refusedSince.get(tenant) ?? 0;
    const good: PreparedEntry[] = [];
    for (const item of items) {
      const prepared = prepare(item);
      numLeft += item.numDroppedBefore;
      if (prepared === null) numLeft++;
      else {
        good.push({ ...prepared, numDroppedBefore: numLeft });
        numLeft = 0;
      }
    }
    return { good, numLeft };
  };
  const settle = (tenant: string, numLeft: number, numRefused: number): void => {
    run.numRefused += numRefused;
    if (numLeft > 0) refusedSince.set(tenant, numLeft);
    else refusedSince.delete(tenant);
  };
  const link = async ({ tenant, linked }: Unlinked): Promise<void> => {
    try {
      await linkEntries({ store, services, options }, tenant, linked);
    } catch {
      numLinksFailed += linked.length;
    }
  };
  const linkLater = (tenant: string, linked: readonly LinkedEntry[]): void => {
    if (linked.length === 0) return;
    unlinked.push({ tenant, linked });
    while (unlinked.length > MAX_UNLINKED) numLinksFailed += unlinked.shift()!.linked.length;
  };
  /** Null: the store refuses it, with its vector and without. */
  const appendOne = async (tenant: string, prepared: PreparedEntry): Promise<readonly LinkedEntry[] | null> => {
    for (const variant of [prepared, withoutVector(prepared)]) {
      try {
        return await append(tenant, [variant]);
      } catch (error) {
        if (!isRefusal(error)) throw error;
      }
    }
    return null;
  };
  /** After the store refused a batch: drops only entries that it refuses alone. */
  const appendSingly = async (tenant: string, items: readonly QueuedEntry[]): Promise<void> => {
    for (const item of items) {
      const { good, numLeft } = countDropped(tenant, [item]);
      const linked = good.length === 0 ? null : await appendOne(tenant, good[0]!);
      queue.remove(tenant, 1);
      if (linked === null) settle(tenant, good.length === 0 ? numLeft : good[0]!.numDroppedBefore + 1, 1);
      else {
        settle(tenant, 0, 0);
        linkLater(tenant, linked);
      }
    }
  };
  return {
    /** Writes the next tenant's next batch: a small one, so that requests do not wait for it, unless it is urgent. */
    async writeBatch(isUrgent: boolean): Promise<void> {
      const max = foreground === null || isUrgent ? Infinity : countAtOnce(foreground, queue.size);
      const next = queue.peek(Math.min(options.batchEntries, max));
      if (next === null) return;
      const { tenant, items } = next;
      await awaitParts(items);
      if (store.putBuilt !== undefined && (await appendInputs(tenant, items))) return;
      const { good, numLeft } = countDropped(tenant, items);
      let linked: readonly LinkedEntry[] = [];
      try {
        if (good.length > 0) linked = await append(tenant, good);
      } catch (error) {
        queue.rotate(tenant);
        if (!isRefusal(error)) throw error;
        return appendSingly(tenant, items);
      }
      queue.remove(tenant, items.length);
      settle(tenant, numLeft, items.length - good.length);
      linkLater(tenant, linked);
    },
    /** Links the oldest batch that waits for it. False: none does. */
    async linkBatch(): Promise<boolean> {
      const next = unlinked.shift();
      if (next === undefined) return false;
      await link(next);
      return true;
    },
    numLinksFailed: () => numLinksFailed,
  };
}
