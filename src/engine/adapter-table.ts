import { affectsKv } from '../adapters/affects-kv.ts';
import { planPlacement, writePlacement } from '../adapters/place-adapter.ts';
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
  readonly numAdapters: number;
  /** Throws if it does not fit the model (`invalid_option`) or the memory (`out_of_memory`); nothing changes then. */
  load(id: number, adapter: Adapter): { readonly sizeBytes: number };
  /** New requests cannot use it; its memory is freed when the requests that use it end. False if not found. */
  unload(id: number): boolean;
  /** A request's adapters, in the order they are summed. Throws `not_found` for unknown ids. */
  resolve(adapters: readonly RequestAdapter[]): readonly SequenceAdapter[];
  /** The cache key part that K and V of such a request depend on; null: no adapter affects them. */
  cacheKey(adapters: readonly SequenceAdapter[]): string | null;
  /** Pinned adapters stay in memory until `unpin`. */
  pin(adapters: readonly SequenceAdapter[]): void;
  unpin(adapters: readonly SequenceAdapter[]): void;
  /** Frees unloaded adapters that no request uses. */
  sweep(): void;
}

interface Entry {
  readonly adapter: Adapter;
  readonly reservation: Reservation;
  /** null: requests with and without it can share pages. */
  readonly kvKey: string | null;
  numUsers: number;
  isUnloaded: boolean;
}

/** Limit of |scale|: beyond it answers are noise, far beyond they are not finite. */
const MAX_SCALE = 100;

/** Sorted by content, not by load order: sums are rounded in this order, also after a restart. */
export function compareAdapters(a: SequenceAdapter, b: SequenceAdapter): number {
  return a.contentHash < b.contentHash ? -1 : a.contentHash > b.contentHash ? 1 : a.scale - b.scale;
}

export function createAdapterTable(model: LoadedModel, cache: KvCache): AdapterTable {
  const entries = new Map<number, Entry>();

  function free(id: number, { reservation }: Entry): void {
    model.setAdapter(id, null);
    cache.unreserve(reservation);
    entries.delete(id);
  }

  function sweep(): void {
    for (const [id, entry] of entries) if (entry.isUnloaded && entry.numUsers === 0) free(id, entry);
  }

  return {
    get numAdapters() {
      return entries.size;
    },
    load(id, adapter) {
      assert(!entries.has(id), `adapter ${id} already exists`);
      if (!model.shape.isCausal)
        throw new RuvLLMError('unsupported', 'this model is an encoder: adapters are not supported');
      checkAdapter(adapter, model.shape);
      const { slabBytes } = cache;
      const plan = planPlacement(adapter.factors, slabBytes);
      const reservation = cache.reserve(plan.numSlabs * slabBytes);
      const slabs = reservation.slabs.map(({ offset }) => model.kv.base + offset);
      model.setAdapter(id, writePlacement(plan, model.pack.arena, slabs));
      // A different split would change the last bits of the result.
      const kvKey = plan.isSplit ? `${adapter.contentHash}/${slabBytes}` : adapter.contentHash;
      const isInKv = affectsKv(adapter, model.shape);
      entries.set(id, { adapter, reservation, kvKey: isInKv ? kvKey : null, numUsers: 0, isUnloaded: false });
      return { sizeBytes: plan.numSlabs * slabBytes };
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
    pin(adapters) {
      for (const { id } of adapters) entries.get(id)!.numUsers++;
    },
    unpin(adapters) {
      for (const { id } of adapters) entries.get(id)!.numUsers--;
    },
    sweep,
  };
}
