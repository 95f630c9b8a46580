import { affectsKv } from '../adapters/affects-kv.ts';
import { type PlacementPlan, planPlacement, writePlacement } from '../adapters/place-adapter.ts';
import { checkAdapter } from '../adapters/target-shapes.ts';
import type { Adapter } from '../adapters/types.ts';
import { assert, RuvLLMError } from '../core/errors.ts';
import type { KvCache } from '../kv-cache/kv-cache.ts';
import type { Reservation } from '../kv-cache/types.ts';
import { MAX_STACKED_ADAPTERS } from '../models/types.ts';
import type { LoadedModel } from '../models/types.ts';
import type { RequestAdapter, SequenceAdapter } from './types.ts';

/** A model's adapters, stored in the KV page memory. Changes only between two steps. */
export interface AdapterTable {
  /** In the page memory. */
  readonly numAdapters: number;
  /**
   * Throws if it does not fit the model (`invalid_option`) or the memory (`out_of_memory`); nothing changes then. Idle adapters make
   * room, the least recently used first: they stay known, and are loaded again by `pin`.
   */
  load(id: number, adapter: Adapter): { readonly sizeBytes: number };
  /** New requests cannot use it; its memory is freed when the requests that use it end. False if not found. */
  unload(id: number): boolean;
  /** A request's adapters, in the order they are summed. Throws `not_found` for unknown ids. */
  resolve(adapters: readonly RequestAdapter[]): readonly SequenceAdapter[];
  /** The cache key part that K and V of such a request depend on; null: no adapter affects them. */
  cacheKey(adapters: readonly SequenceAdapter[]): string | null;
  /** False: `pin` must load one of them again, which moves pages. */
  areInMemory(adapters: readonly RequestAdapter[]): boolean;
  /** Pinned adapters stay in memory until `unpin`. Throws a retryable `out_of_memory` if others take it; nothing changes then. */
  pin(adapters: readonly SequenceAdapter[]): void;
  unpin(adapters: readonly SequenceAdapter[]): void;
  /** Frees unloaded adapters that no request uses. */
  sweep(): void;
}

interface Entry {
  readonly adapter: Adapter;
  readonly plan: PlacementPlan;
  readonly sizeBytes: number;
  /** Null: others took its memory. */
  reservation: Reservation | null;
  /** null: requests with and without it can share pages. */
  readonly kvKey: string | null;
  numUsers: number;
  /** Number of the last use of any adapter. */
  lastUse: number;
  isUnloaded: boolean;
}

/** Adapters known at once, in memory or not, in budgets: weights that leave the page memory stay on the heap. */
const MAX_KNOWN_BUDGETS = 2;

/** Limit of |scale|: beyond it answers are noise, far beyond they are not finite. */
const MAX_SCALE = 100;

/** Sorted by content, not by load order: sums are rounded in this order, also after a restart. */
export function compareAdapters(a: SequenceAdapter, b: SequenceAdapter): number {
  return a.contentHash < b.contentHash ? -1 : a.contentHash > b.contentHash ? 1 : a.scale - b.scale;
}

const isOutOfMemory = (error: unknown): error is RuvLLMError =>
  error instanceof RuvLLMError && error.code === 'out_of_memory';

export function createAdapterTable(model: LoadedModel, cache: KvCache): AdapterTable {
  const entries = new Map<number, Entry>();
  let numUses = 0;

  function place(id: number, entry: Entry): void {
    const reservation = cache.reserve(entry.sizeBytes);
    const slabs = reservation.slabs.map(({ offset }) => model.kv.base + offset);
    model.setAdapter(id, writePlacement(entry.plan, model.pack.arena, slabs));
    entry.reservation = reservation;
  }

  function leave(id: number, entry: Entry): void {
    if (entry.reservation === null) return;
    model.setAdapter(id, null);
    cache.unreserve(entry.reservation);
    entry.reservation = null;
  }

  function findIdle(): readonly [number, Entry] | undefined {
    let found: readonly [number, Entry] | undefined;
    for (const candidate of entries) {
      const { reservation, numUsers, lastUse } = candidate[1];
      if (reservation === null || numUsers > 0) continue;
      if (found === undefined || lastUse < found[1].lastUse) found = candidate;
    }
    return found;
  }

  /** Idle adapters leave until it fits; if it does not, they come back. */
  function placeInsteadOfIdle(id: number, entry: Entry): void {
    const left: (readonly [number, Entry])[] = [];
    for (;;) {
      try {
        return place(id, entry);
      } catch (error) {
        if (!isOutOfMemory(error)) throw error;
        const idle = findIdle();
        if (idle === undefined) {
          for (const [idleId, idleEntry] of left.toReversed()) place(idleId, idleEntry);
          throw error;
        }
        leave(...idle);
        left.push(idle);
      }
    }
  }

  function placeAgain(id: number, entry: Entry): void {
    try {
      placeInsteadOfIdle(id, entry);
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      const message = `adapter ${id} was idle and cannot be loaded again while others are in use: ${error.message}`;
      throw new RuvLLMError('out_of_memory', message, { data: error.data, isRetryable: true });
    }
  }

  const unpin = (adapters: readonly SequenceAdapter[]): void => {
    for (const { id } of adapters) {
      const entry = entries.get(id)!;
      entry.numUsers--;
      entry.lastUse = ++numUses;
    }
  };

  function free(id: number, entry: Entry): void {
    leave(id, entry);
    entries.delete(id);
  }

  function refuseTooMany(sizeBytes: number): void {
    const { budgetBytes } = cache.stats();
    let knownBytes = sizeBytes;
    for (const entry of entries.values()) knownBytes += entry.sizeBytes;
    const maxBytes = MAX_KNOWN_BUDGETS * budgetBytes;
    // One that is too large alone gets the message of the page memory.
    if (knownBytes <= maxBytes || sizeBytes > budgetBytes) return;
    const message = `with these ${sizeBytes} bytes, adapters take ${knownBytes} in and outside the memory budget, at most ${maxBytes} may be: unload one first, or raise the budget`;
    throw new RuvLLMError('out_of_memory', message, { data: { neededBytes: sizeBytes, knownBytes, maxBytes } });
  }

  function sweep(): void {
    for (const [id, entry] of entries) if (entry.isUnloaded && entry.numUsers === 0) free(id, entry);
  }

  return {
    get numAdapters() {
      let count = 0;
      for (const { reservation } of entries.values()) if (reservation !== null) count++;
      return count;
    },
    load(id, adapter) {
      assert(!entries.has(id), `adapter ${id} already exists`);
      if (!model.shape.isCausal)
        throw new RuvLLMError('unsupported', 'this model is an encoder: adapters are not supported');
      checkAdapter(adapter, model.shape);
      const { slabBytes } = cache;
      const plan = planPlacement(adapter.factors, slabBytes);
      const sizeBytes = plan.numSlabs * slabBytes;
      refuseTooMany(sizeBytes);
      // A different split would change the last bits of the result.
      const kvKey = plan.isSplit ? `${adapter.contentHash}/${slabBytes}` : adapter.contentHash;
      const isInKv = affectsKv(adapter, model.shape);
      const entry: Entry = {
        adapter,
        plan,
        sizeBytes,
        reservation: null,
        kvKey: isInKv ? kvKey : null,
        numUsers: 0,
        lastUse: ++numUses,
        isUnloaded: false,
      };
      placeInsteadOfIdle(id, entry);
      entries.set(id, entry);
      return { sizeBytes };
    },
    unload(id) {
      const entry = entries.get(id);
      if (entry === undefined || entry.isUnloaded) return false;
      entry.isUnloaded = true;
      sweep();
      return true;
    },
    resolve(adapters) {
      if (adapters.length > MAX_STACKED_ADAPTERS) {
        throw new RuvLLMError(
          'invalid_option',
          `a request can use ${MAX_STACKED_ADAPTERS} adapters, got ${adapters.length}`,
          {
            data: { numAdapters: adapters.length, limit: MAX_STACKED_ADAPTERS },
          },
        );
      }
      const resolved = adapters.map(({ id, scale }) => {
        const entry = entries.get(id);
        if (entry === undefined || entry.isUnloaded) {
          throw new RuvLLMError('not_found', `adapter ${id} not found`, { data: { adapterId: id } });
        }
        if (!(Math.abs(scale) <= MAX_SCALE)) {
          throw new RuvLLMError(
            'invalid_option',
            `an adapter scale must be -${MAX_SCALE} to ${MAX_SCALE}, got ${scale}`,
          );
        }
        return { id, scale, contentHash: entry.adapter.contentHash };
      });
      // A scale of 0 changes nothing.
      return resolved.filter(({ scale }) => scale !== 0).sort(compareAdapters);
    },
    cacheKey(adapters) {
      const keys = adapters.flatMap(({ id, scale }) => {
        const { kvKey } = entries.get(id)!;
        return kvKey === null ? [] : [`${kvKey}*${scale}`];
      });
      return keys.length === 0 ? null : keys.join(' ');
    },
    areInMemory: (adapters) => adapters.every(({ id }) => entries.get(id)?.reservation !== null),
    pin(adapters) {
      // All first: they must not make room for each other.
      for (const { id } of adapters) entries.get(id)!.numUsers++;
      try {
        for (const { id } of adapters) {
          const entry = entries.get(id)!;
          entry.lastUse = ++numUses;
          if (entry.reservation === null) placeAgain(id, entry);
        }
      } catch (error) {
        unpin(adapters);
        throw error;
      }
    },
    unpin,
    sweep,
  };
}
