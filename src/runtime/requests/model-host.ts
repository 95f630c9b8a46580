import { raceAbort, waitFor as waitUntil } from '../../core/abort.ts';
import type { ErasurePart } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../model.ts';
import { type Clock, within } from '../../core/clock.ts';
import { lossOf, replaceDelayMs, STABLE_MS } from './engine-loss.ts';
import { createLoadQueue } from './load-queue.ts';
import { checkGroups, planRoom } from './model-room.ts';
import {
  createSlot,
  defaultIdleMs,
  isAlive,
  type ModelEntry,
  type ModelSlot,
  type ModelState,
  type ModelStatus,
  statusOf,
} from './model-slot.ts';

export type { ModelEntry, ModelState, ModelStatus };

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
  /** Whether any model has been loaded, now or before. */
  readonly hasLoaded: boolean;
  /** By id or alias, an adapter behind it or not; null when there is none. Only `tenant` finds its own adapters. */
  find(name: string, tenant?: string): ModelStatus | null;
  /**
   * Waits for the model at most `waitMs`, then `overloaded` with the work going on. Unknown names are a 404, adapters of tenants
   * other than `tenant` included.
   */
  acquire(name: string, options: { signal: AbortSignal; waitMs: number; tenant?: string }): Promise<ModelLease>;
  /**
   * Unloads a model. A model in use is a `conflict` unless `force`: then new requests are rejected, running ones may finish within
   * `drainMs`, and the others fail. The next request loads it again.
   */
  unload(name: string, options: UnloadOptions): Promise<ModelStatus>;
  /**
   * Unloads the model after `idleMs` without requests; 0: as soon as it is idle, null: never. Once unloaded, its own time counts
   * again. A pinned model accepts only 0.
   */
  keepFor(name: string, idleMs: number | null): Promise<void>;
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

/** Of a model that is idle. */
const GENTLY: UnloadOptions = { force: false, drainMs: 0 };

/** Models that were added, beside those it was started with. */
const MAX_ADDED = 64;

/** Which models a host has, and how much memory they may take. */
export interface ModelHostOptions {
  readonly entries: readonly ModelEntry[];
  /** Most bytes of loaded models together; null: no limit of its own. */
  readonly budgetBytes: number | null;
  /** Most loaded models of each group. Default: no limits. */
  readonly groups?: ReadonlyMap<string, number>;
  readonly clock: Clock;
  /** Called with each loaded model before its first request. Default: nothing. */
  readonly onLoad?: (id: string, model: Model) => Promise<void>;
}

/** A host that loads each model with its first request. */
export function createModelHost({
  entries,
  budgetBytes,
  groups = new Map(),
  clock,
  onLoad,
}: ModelHostOptions): ModelHost {
  const slots = new Map<string, ModelSlot>();
  const names = new Map<string, ModelSlot>();
  const ended = new AbortController();
  let useCount = 0;
  let hasLoaded = false;
  /** Called when a model became idle. */
  const waiters = new Set<() => void>();
  const queue = createLoadQueue({
    planRoom(slot) {
      ended.signal.throwIfAborted();
      return planRoom(slots.values(), slot, { budgetBytes, groups });
    },
    unload,
    async begin(slot) {
      // Synchronous with the plan, so that no other load can take the same room.
      slot.reservedBytes = slot.entry.sizeBytes ?? 0;
      const model = await slot.entry.load(ended.signal);
      await onLoad?.(slot.entry.id, model);
      slot.model = model;
      hasLoaded = true;
      slot.loss = null;
      slot.loadedMs = clock.now();
      slot.model.onLost((error) => replaceLost(slot, error));
      slot.reservedBytes = slot.model.modelInfo().memory.totalBytes;
      slot.lastUsed = ++useCount;
    },
  });

  /** Without a request: a balancer that sees the 503 of /health sends none. */
  function replaceLost(slot: ModelSlot, error: unknown, isEarly = clock.now() - slot.loadedMs < STABLE_MS): void {
    const loss = lossOf(error);
    if (loss === null || ended.signal.aborted) return;
    slot.numEarlyLosses = isEarly ? slot.numEarlyLosses + 1 : 0;
    slot.numLosses++;
    slot.loss = loss;
    startLoad(slot).catch((failure: unknown) => replaceLost(slot, failure, true));
  }

  /** An engine that is lost again and again is not started at once. */
  async function loadAfterDelay(slot: ModelSlot): Promise<void> {
    const delayMs = slot.loss === null ? 0 : replaceDelayMs(slot.numEarlyLosses);
    if (delayMs > 0) await waitUntil(ended.signal, (wake) => clock.setTimer(delayMs, wake));
    await queue.load(slot);
  }

  function addSlot(entry: ModelEntry, isAdded: boolean): ModelSlot {
    const slot = createSlot(entry, isAdded);
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
  checkGroups([...slots.values()], groups);

  const hasAdapter = (model: Model, name: string, tenant: string | null): boolean =>
    model.adapters().some((one) => one.name === name && (one.tenant === null || one.tenant === tenant));

  /** `name`, or `name:adapter` where no model has all of it as its own name. Which adapters there are the model knows. */
  function findSlot(name: string, tenant: string | null): { slot: ModelSlot; adapter: string | null } | null {
    const whole = names.get(name);
    if (whole !== undefined) return { slot: whole, adapter: null };
    const at = name.lastIndexOf(':');
    const slot = at < 0 ? undefined : names.get(name.slice(0, at));
    if (slot === undefined) return null;
    const adapter = name.slice(at + 1);
    // The adapters of an unloaded model are unknown.
    if (isAlive(slot) && !hasAdapter(slot.model!, adapter, tenant)) return null;
    return { slot, adapter };
  }

  async function unload(slot: ModelSlot): Promise<void> {
    const { model } = slot;
    if (model === null) return;
    stopIdleTimer(slot);
    slot.unloading ??= model.dispose().finally(() => {
      slot.model = null;
      slot.unloading = null;
      slot.reservedBytes = 0;
      slot.idleMs = defaultIdleMs(slot.entry);
    });
    await slot.unloading;
  }

  function stopIdleTimer(slot: ModelSlot): void {
    slot.idleTimer?.cancel();
    slot.idleTimer = null;
  }

  /** An idle model is unloaded after its time; the next request stops the timer. */
  function startIdleTimer(slot: ModelSlot): void {
    stopIdleTimer(slot);
    if (slot.idleMs === null || slot.numUsers > 0 || !isAlive(slot)) return;
    const cancel = clock.setTimer(slot.idleMs, () => {
      slot.idleTimer = null;
      // A model that cannot be given back has no one to tell.
      unloadNow(slot, GENTLY).catch(() => {});
    });
    slot.idleTimer = { cancel, expiresMs: clock.wallClock() + slot.idleMs };
  }

  /** Requests may wait for the room of a model that became idle or was unloaded. */
  function wakeWaiters(): void {
    const waking = [...waiters];
    waiters.clear();
    for (const wake of waking) wake();
    queue.wake();
  }

  function startLoad(slot: ModelSlot): Promise<void> {
    slot.error = null;
    slot.loading ??= loadAfterDelay(slot)
      .catch((error: unknown) => {
        slot.error = error;
        slot.reservedBytes = 0;
        throw error;
      })
      .finally(() => {
        slot.loading = null;
        startIdleTimer(slot);
        wakeWaiters();
      });
    slot.loading.catch(() => {}); // the caller may have left
    return slot.loading;
  }

  /** Holds a model's place, loaded or not: what somebody waits for is not idle. */
  function hold(slot: ModelSlot): () => void {
    stopIdleTimer(slot);
    slot.numUsers++;
    slot.lastUsed = ++useCount;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      slot.numUsers--;
      slot.lastUsed = ++useCount;
      if (slot.numUsers > 0) return;
      startIdleTimer(slot);
      wakeWaiters();
    };
  }

  async function waitFor(slot: ModelSlot, signal: AbortSignal, waitMs: number): Promise<Model> {
    const startMs = clock.now();
    while (!isAlive(slot) || slot.unloading !== null) {
      if (ended.signal.aborted) throw shutDown();
      const leftMs = waitMs - (clock.now() - startMs);
      const loading = startLoad(slot);
      if (leftMs > 0 && (await within(clock, leftMs, raceAbort(loading, signal))) !== null) continue;
      queue.keep(slot);
      throw new RuvLLMError('overloaded', `model ${slot.entry.id} is not loaded yet, after ${waitMs} ms`, {
        data: { waitMs },
        isRetryable: true,
      });
    }
    return slot.model!;
  }

  function requireSlot(name: string, tenant: string | null = null): { slot: ModelSlot; adapter: string | null } {
    const found = findSlot(name, tenant);
    if (found === null) throw modelNotFound(name);
    return found;
  }

  async function whenIdle(slot: ModelSlot): Promise<void> {
    while (slot.numUsers > 0) await new Promise<void>((resolve) => waiters.add(resolve));
  }

  async function unloadNow(slot: ModelSlot, { force, drainMs }: UnloadOptions): Promise<void> {
    const { id } = slot.entry;
    if (slot.loading !== null) throw inUse(`model ${id} is being loaded`, { id });
    if (slot.numUsers > 0 && !force) {
      throw inUse(`model ${id} is used by ${slot.numUsers} requests`, { id, numUsers: slot.numUsers });
    }
    if (slot.numUsers > 0) {
      slot.isDraining = true;
      await within(clock, drainMs, whenIdle(slot)).finally(() => (slot.isDraining = false));
    }
    // Requests that come from here on load the model again.
    try {
      await unload(slot);
      slot.error = null;
      slot.loss = null;
    } finally {
      wakeWaiters();
    }
  }

  return {
    get memory() {
      let usedBytes = 0;
      for (const { reservedBytes } of slots.values()) usedBytes += reservedBytes;
      return { budgetBytes, usedBytes };
    },
    async unload(name, options) {
      const { slot } = requireSlot(name);
      await unloadNow(slot, options);
      return statusOf(slot);
    },
    async keepFor(name, idleMs) {
      const { slot } = requireSlot(name);
      if (idleMs !== 0 && slot.entry.isPinned === true) return;
      const isIdle = slot.numUsers === 0 && slot.loading === null;
      if (idleMs === 0 && isIdle) return await unloadNow(slot, GENTLY);
      slot.idleMs = idleMs;
      startIdleTimer(slot);
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
    get hasLoaded() {
      return hasLoaded;
    },
    get numUsers() {
      let sum = 0;
      for (const { numUsers } of slots.values()) sum += numUsers;
      return sum;
    },
    list: () => [...slots.values()].map(statusOf),
    find(name, tenant) {
      const found = findSlot(name, tenant ?? null);
      return found === null ? null : statusOf(found.slot);
    },
    async acquire(name, { signal, waitMs, tenant = null }) {
      const { slot, adapter } = requireSlot(name, tenant);
      if (slot.isDraining) {
        throw new RuvLLMError('overloaded', `model ${slot.entry.id} is being unloaded`, { isRetryable: true });
      }
      const release = hold(slot);
      try {
        const model = await waitFor(slot, signal, waitMs);
        if (adapter !== null && !hasAdapter(model, adapter, tenant)) throw modelNotFound(name);
        return { id: slot.entry.id, model, adapter, release };
      } catch (error) {
        release();
        if (signal.aborted) queue.leave(slot);
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
      for (const slot of slots.values()) stopIdleTimer(slot);
      wakeWaiters();
      await Promise.allSettled([...slots.values()].map((slot) => slot.loading));
      await Promise.all([...slots.values()].map(unload));
    },
  };
}

function modelNotFound(name: string): RuvLLMError {
  return new RuvLLMError('model_not_found', `the model ${JSON.stringify(name.slice(0, 200))} does not exist here`, {
    data: { option: 'model' },
  });
}

function inUse(message: string, data: Readonly<Record<string, string | number>>): RuvLLMError {
  return new RuvLLMError('conflict', message, { data, isRetryable: true });
}

function shutDown(): RuvLLMError {
  return new RuvLLMError('overloaded', 'the server is shutting down', { isRetryable: true });
}
