import { raceAbort } from '../../core/abort.ts';
import type { ErasurePart } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../model.ts';
import { type Clock, within } from '../../core/clock.ts';

/** A model that can be loaded. */
export interface ModelEntry {
  readonly id: string;
  readonly aliases: readonly string[];
  /** Seconds since 1970: when the file was made, or known. */
  readonly created: number;
  /** Bytes the model takes once loaded; null: unknown before loading. */
  readonly sizeBytes: number | null;
  /** Path of its file, never shown to clients; absent: unknown. */
  readonly path?: string;
  load(signal: AbortSignal): Promise<Model>;
}

/** `unloading`: new requests are rejected, running ones may finish. */
export type ModelState = 'unloaded' | 'loading' | 'loaded' | 'unloading' | 'failed';

/** State of a model; reading it does not load the model. */
export interface ModelStatus extends Pick<ModelEntry, 'id' | 'aliases' | 'created' | 'sizeBytes' | 'path'> {
  readonly state: ModelState;
  /** Bytes it takes, or has been promised; 0: none. */
  readonly heldBytes: number;
  /** Whether it came while the server was running. */
  readonly isAdded: boolean;
  readonly numUsers: number;
  /** The loaded model; it may be unloaded as soon as it is idle. */
  readonly model: Model | null;
  /** Why the last load failed. */
  readonly error: string | null;
}

/** The use of a loaded model: it stays loaded until `release`, which may be called twice. */
export interface ModelLease {
  readonly id: string;
  readonly model: Model;
  /** The adapter that the name asked for, behind a colon; null: none. */
  readonly adapter: string | null;
  release(): void;
}

/** Models by name, loaded when somebody needs them and unloaded when the budget needs their place. */
export interface ModelHost {
  list(): readonly ModelStatus[];
  /** Of all models. */
  readonly numUsers: number;
  /** By id or alias, an adapter behind it or not; null when there is none. */
  find(name: string): ModelStatus | null;
  /** Waits for the model at most `waitMs`, then `overloaded` with the work going on; unknown names are a 404. */
  acquire(name: string, options: { signal: AbortSignal; waitMs: number }): Promise<ModelLease>;
  /**
   * Unloads a model. A model in use is a `conflict` unless `force`: then new requests are rejected, running ones may finish within
   * `drainMs`, and the others fail. The next request loads it again.
   */
  unload(name: string, options: UnloadOptions): Promise<ModelStatus>;
  /** Makes one more model known; `conflict` where its name, or an alias, is taken. Nothing is loaded. */
  add(entry: ModelEntry): ModelStatus;
  /** Unloads one that was added, and forgets it; `conflict` for those it was started with. */
  remove(name: string, options: UnloadOptions): Promise<void>;
  /** Bytes of loaded models; the budget null: no limit of its own. */
  readonly memory: { readonly budgetBytes: number | null; readonly usedBytes: number };
  /** Erases data of tenants from all loaded models. */
  readonly erasure: ErasurePart;
  /** Fails waiting requests and unloads all models. */
  dispose(): Promise<void>;
}

/** How a model that is in use is unloaded. */
export interface UnloadOptions {
  readonly force: boolean;
  readonly drainMs: number;
}

/** Models that were added, beside those it was started with. */
const MAX_ADDED = 64;

/** Which models a host has, and how much memory they may take. */
export interface ModelHostOptions {
  readonly entries: readonly ModelEntry[];
  /** Most bytes of loaded models together; null: no limit of its own. */
  readonly budgetBytes: number | null;
  readonly clock: Clock;
}

interface Slot {
  readonly entry: ModelEntry;
  model: Model | null;
  loading: Promise<void> | null;
  error: unknown;
  numUsers: number;
  /** Of the last release or acquire. */
  lastUsed: number;
  /** Its memory is being given back. */
  unloading: Promise<void> | null;
  /** New requests are rejected. */
  isDraining: boolean;
  readonly isAdded: boolean;
  /** Place it was given before it is loaded; models still waiting for theirs do not count, or two would wait for each other. */
  reservedBytes: number;
}

/** A host that loads each model with its first request. */
export function createModelHost({ entries, budgetBytes, clock }: ModelHostOptions): ModelHost {
  const slots = new Map<string, Slot>();
  const names = new Map<string, Slot>();
  const ended = new AbortController();
  const budget = budgetBytes ?? Infinity;
  let useCount = 0;
  /** Called when a model became idle: somebody may wait for its place. */
  const waiters = new Set<() => void>();

  function addSlot(entry: ModelEntry, isAdded: boolean): Slot {
    const slot: Slot = {
      entry,
      model: null,
      loading: null,
      error: null,
      numUsers: 0,
      lastUsed: 0,
      unloading: null,
      isDraining: false,
      isAdded,
      reservedBytes: 0,
    };
    const own = [entry.id, ...entry.aliases];
    const taken = own.find((name, index) => names.has(name) || own.indexOf(name) !== index);
    if (taken !== undefined) {
      const code = isAdded ? 'conflict' : 'invalid_option';
      throw new RuvLLMError(code, `two models are called ${JSON.stringify(taken.slice(0, 200))}`);
    }
    slots.set(entry.id, slot);
    for (const name of own) names.set(name, slot);
    return slot;
  }

  for (const entry of entries) addSlot(entry, false);

  /** `name`, or `name:adapter` where no model has all of it as its own name. Which adapters there are the model knows. */
  function findSlot(name: string): { slot: Slot; adapter: string | null } | null {
    const whole = names.get(name);
    if (whole !== undefined) return { slot: whole, adapter: null };
    const at = name.lastIndexOf(':');
    const slot = at < 0 ? undefined : names.get(name.slice(0, at));
    if (slot === undefined) return null;
    const adapter = name.slice(at + 1);
    // The adapters of an unloaded model are unknown; the call itself checks them.
    if (isAlive(slot) && !slot.model!.adapters().some((known) => known.name === adapter)) return null;
    return { slot, adapter };
  }

  const isAlive = (slot: Slot): boolean => slot.model !== null && slot.model.isLoaded();

  function statusOf(slot: Slot): ModelStatus {
    const { entry, numUsers } = slot;
    const isLeaving = slot.isDraining || slot.unloading !== null;
    const state: ModelState = isAlive(slot)
      ? isLeaving
        ? 'unloading'
        : 'loaded'
      : slot.loading !== null
        ? 'loading'
        : slot.error !== null
          ? 'failed'
          : 'unloaded';
    const error = slot.error === null ? null : slot.error instanceof Error ? slot.error.message : String(slot.error);
    const { id, aliases, created, sizeBytes, path } = entry;
    const known = { id, aliases, created, sizeBytes, ...(path === undefined ? {} : { path }), state, numUsers, isAdded: slot.isAdded };
    return { ...known, heldBytes: slot.reservedBytes, model: isAlive(slot) ? slot.model : null, error };
  }

  function usedBytes(except: Slot | null): number {
    let total = 0;
    for (const slot of slots.values()) {
      if (slot !== except) total += slot.reservedBytes;
    }
    return total;
  }

  async function unload(slot: Slot): Promise<void> {
    const { model } = slot;
    if (model === null) return;
    slot.unloading ??= model.dispose().finally(() => {
      slot.model = null;
      slot.unloading = null;
      slot.reservedBytes = 0;
    });
    await slot.unloading;
  }

  /** Makes place for a model: the one not used for longest goes first, one in use never. */
  async function makeRoom(wanted: Slot): Promise<void> {
    const needed = wanted.entry.sizeBytes ?? 0;
    if (needed > budget) {
      throw new RuvLLMError(
        'out_of_memory',
        `model ${wanted.entry.id} takes ${needed} bytes, the budget for models is ${budget}`,
        { data: { neededBytes: needed, budgetBytes: budget } },
      );
    }
    while (usedBytes(wanted) + needed > budget) {
      ended.signal.throwIfAborted();
      const idle = [...slots.values()]
        .filter((slot) => slot !== wanted && slot.model !== null && slot.numUsers === 0)
        .sort((a, b) => a.lastUsed - b.lastUsed)[0];
      if (idle !== undefined) await unload(idle);
      else await new Promise<void>((resolve) => waiters.add(resolve));
    }
    // Synchronous with the check above, or another waiting request would reserve the same memory.
    wanted.reservedBytes = needed;
  }

  function wakeWaiters(): void {
    const waking = [...waiters];
    waiters.clear();
    for (const wake of waking) wake();
  }

  function startLoad(slot: Slot): Promise<void> {
    const load = async (): Promise<void> => {
      await slot.unloading;
      if (slot.model !== null) await unload(slot); // its engine was lost
      await makeRoom(slot);
      slot.model = await slot.entry.load(ended.signal);
      slot.reservedBytes = slot.model.modelInfo().memory.totalBytes;
      slot.lastUsed = ++useCount;
    };
    slot.error = null;
    slot.loading ??= load()
      .catch((error: unknown) => {
        slot.error = error;
        slot.reservedBytes = 0;
        throw error;
      })
      .finally(() => {
        slot.loading = null;
        wakeWaiters();
      });
    slot.loading.catch(() => {}); // the caller may have left
    return slot.loading;
  }

  /** Holds a model's place, loaded or not: what somebody waits for is not idle. */
  function hold(slot: Slot): () => void {
    slot.numUsers++;
    slot.lastUsed = ++useCount;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      slot.numUsers--;
      slot.lastUsed = ++useCount;
      if (slot.numUsers === 0) wakeWaiters();
    };
  }

  async function waitFor(slot: Slot, signal: AbortSignal, waitMs: number): Promise<Model> {
    const startMs = clock.now();
    while (!isAlive(slot) || slot.unloading !== null) {
      if (ended.signal.aborted) throw shutDown();
      const leftMs = waitMs - (clock.now() - startMs);
      const loading = startLoad(slot);
      if (leftMs > 0 && (await within(clock, leftMs, raceAbort(loading, signal))) !== null) continue;
      throw new RuvLLMError('overloaded', `model ${slot.entry.id} is not loaded yet, after ${waitMs} ms`, {
        data: { waitMs },
        isRetryable: true,
      });
    }
    return slot.model!;
  }

  function requireSlot(name: string): { slot: Slot; adapter: string | null } {
    const found = findSlot(name);
    if (found !== null) return found;
    throw new RuvLLMError('model_not_found', `the model ${JSON.stringify(name.slice(0, 200))} does not exist here`, {
      data: { option: 'model' },
    });
  }

  async function whenIdle(slot: Slot): Promise<void> {
    while (slot.numUsers > 0) await new Promise<void>((resolve) => waiters.add(resolve));
  }

  async function unloadNow(slot: Slot, { force, drainMs }: UnloadOptions): Promise<void> {
    const { id } = slot.entry;
    if (slot.loading !== null) throw inUse(`model ${id} is being loaded`, { id });
    if (slot.numUsers > 0 && !force) {
      throw inUse(`model ${id} is used by ${slot.numUsers} requests`, { id, numUsers: slot.numUsers });
    }
    slot.isDraining = true;
    try {
      if (slot.numUsers > 0) await within(clock, drainMs, whenIdle(slot));
      await unload(slot);
      slot.error = null;
    } finally {
      slot.isDraining = false;
      wakeWaiters();
    }
  }

  return {
    get memory() {
      return { budgetBytes, usedBytes: usedBytes(null) };
    },
    async unload(name, options) {
      const { slot } = requireSlot(name);
      await unloadNow(slot, options);
      return statusOf(slot);
    },
    add(entry) {
      const numAdded = [...slots.values()].filter(({ isAdded }) => isAdded).length;
      if (numAdded < MAX_ADDED) return statusOf(addSlot(entry, true));
      throw new RuvLLMError('conflict', `${numAdded} models were added, at most ${MAX_ADDED} may be`);
    },
    async remove(name, options) {
      const { slot } = requireSlot(name);
      const { id, aliases } = slot.entry;
      if (!slot.isAdded) throw new RuvLLMError('conflict', `the server was started with model ${id}`);
      await unloadNow(slot, options);
      // Somebody may have come while its memory was given back.
      if (slot.loading !== null || slot.numUsers > 0) throw inUse(`model ${id} is used again`, { id });
      slots.delete(id);
      for (const own of [id, ...aliases]) names.delete(own);
    },
    get numUsers() {
      let sum = 0;
      for (const { numUsers } of slots.values()) sum += numUsers;
      return sum;
    },
    list: () => [...slots.values()].map(statusOf),
    find(name) {
      const found = findSlot(name);
      return found === null ? null : statusOf(found.slot);
    },
    async acquire(name, { signal, waitMs }) {
      const { slot, adapter } = requireSlot(name);
      if (slot.isDraining) {
        throw new RuvLLMError('overloaded', `model ${slot.entry.id} is being unloaded`, { isRetryable: true });
      }
      const release = hold(slot);
      try {
        return { id: slot.entry.id, model: await waitFor(slot, signal, waitMs), adapter, release };
      } catch (error) {
        release();
        throw error;
      }
    },
    erasure: {
      name: 'models',
      isLast: true,
      async erase(subject) {
        for (const { model } of slots.values()) await model?.erasure.erase(subject);
      },
      async count(subject) {
        let numItems = 0;
        for (const { model } of slots.values()) numItems += (await model?.erasure.count(subject)) ?? 0;
        return numItems;
      },
    },
    async dispose() {
      ended.abort(shutDown());
      wakeWaiters();
      await Promise.allSettled([...slots.values()].map((slot) => slot.loading));
      await Promise.all([...slots.values()].map(unload));
    },
  };
}

function inUse(message: string, data: Readonly<Record<string, string | number>>): RuvLLMError {
  return new RuvLLMError('conflict', message, { data, isRetryable: true });
}

function shutDown(): RuvLLMError {
  return new RuvLLMError('overloaded', 'the server is shutting down', { isRetryable: true });
}
