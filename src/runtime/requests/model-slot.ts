import type { SamplingDefaults } from '../../sampling/generate-params.ts';
import type { Model } from '../model.ts';
import type { EngineLoss } from './engine-loss.ts';

/** A model that can be loaded. */
export interface ModelEntry {
  readonly id: string;
  readonly aliases: readonly string[];
  /** Seconds since 1970: when the file was made, or known. */
  readonly created: number;
  /** Bytes the model takes once loaded; null: unknown before loading. */
  readonly sizeBytes: number | null;
  /** Bytes of its file; absent: unknown. */
  readonly fileBytes?: number;
  /** Path of its file, never shown to clients; absent: unknown. */
  readonly path?: string;
  /** Its own context length; null: the default. Default null. */
  readonly maxContext?: number | null;
  /** Sampling of requests that set none of it, where it differs from the file's. Default: none. */
  readonly sampling?: Partial<SamplingDefaults>;
  /** Whether it stays loaded: it is not unloaded for other models or when idle. Default false. */
  readonly isPinned?: boolean;
  /** Milliseconds without requests after which it is unloaded; null: never. Default null. */
  readonly idleUnloadMs?: number | null;
  /** Group whose number of loaded models is limited; null: none. Default null. */
  readonly group?: string | null;
  load(signal: AbortSignal): Promise<Model>;
}

/** `loading`: also while it waits for its turn. `unloading`: new requests are rejected, running ones may finish. */
export type ModelState = 'unloaded' | 'loading' | 'loaded' | 'unloading' | 'failed';

/** State of a model; reading it does not load the model. */
export interface ModelStatus extends Pick<
  ModelEntry,
  'id' | 'aliases' | 'created' | 'sizeBytes' | 'fileBytes' | 'path'
> {
  readonly state: ModelState;
  /** Bytes it takes, or has been promised; 0: none. */
  readonly heldBytes: number;
  /** Whether it came while the server was running. */
  readonly isAdded: boolean;
  /** The context length that it is loaded with; null: the default. */
  readonly maxContext: number | null;
  readonly sampling: Partial<SamplingDefaults>;
  readonly isPinned: boolean;
  /** Group whose number of loaded models is limited; null: none. */
  readonly group: string | null;
  /** Milliseconds since 1970 when the idle model is unloaded; null: it is in use or stays loaded. */
  readonly expiresMs: number | null;
  readonly numUsers: number;
  /** The loaded model; it may be unloaded as soon as it is idle. */
  readonly model: Model | null;
  /** Why the last load failed. */
  readonly error: string | null;
  /** Why its engine is being replaced; null: it is not. */
  readonly loss: EngineLoss | null;
  /** Engines of it that stalled or crashed since the server was started. */
  readonly numLosses: number;
}

/** A model of a host with its state. */
export interface ModelSlot {
  readonly entry: ModelEntry;
  model: Model | null;
  loading: Promise<void> | null;
  error: unknown;
  numUsers: number;
  /** Of the last release or acquire. */
  lastUsed: number;
  /** Why its engine is being replaced; null: it is not. */
  loss: EngineLoss | null;
  numLosses: number;
  /** Losses in a row, each soon after a load. */
  numEarlyLosses: number;
  /** When it was loaded; -Infinity: never. */
  loadedMs: number;
  /** Its memory is being given back. */
  unloading: Promise<void> | null;
  /** New requests are rejected. */
  isDraining: boolean;
  readonly isAdded: boolean;
  /** Place it was given before it is loaded; models still waiting for theirs do not count, or two would wait for each other. */
  reservedBytes: number;
  /** Milliseconds without requests after which it is unloaded; null: never. */
  idleMs: number | null;
  /** Timer of an idle model; null: not running. */
  idleTimer: { readonly cancel: () => void; readonly expiresMs: number } | null;
}

export const defaultIdleMs = ({ isPinned = false, idleUnloadMs = null }: ModelEntry): number | null =>
  isPinned ? null : idleUnloadMs;

export function createSlot(entry: ModelEntry, isAdded: boolean): ModelSlot {
  return {
    entry,
    model: null,
    loading: null,
    error: null,
    numUsers: 0,
    lastUsed: 0,
    loss: null,
    numLosses: 0,
    numEarlyLosses: 0,
    loadedMs: -Infinity,
    unloading: null,
    isDraining: false,
    isAdded,
    reservedBytes: 0,
    idleMs: defaultIdleMs(entry),
    idleTimer: null,
  };
}

export const isAlive = ({ model }: ModelSlot): boolean => model !== null && model.isLoaded();

function stateOf(slot: ModelSlot): ModelState {
  if (isAlive(slot)) return slot.isDraining || slot.unloading !== null ? 'unloading' : 'loaded';
  if (slot.loading !== null) return 'loading';
  return slot.error === null ? 'unloaded' : 'failed';
}

export function statusOf(slot: ModelSlot): ModelStatus {
  const {
    id,
    aliases,
    created,
    sizeBytes,
    fileBytes,
    path,
    maxContext = null,
    sampling = {},
    isPinned = false,
    group = null,
  } = slot.entry;
  return {
    id,
    aliases,
    created,
    sizeBytes,
    ...(fileBytes === undefined ? {} : { fileBytes }),
    ...(path === undefined ? {} : { path }),
    state: stateOf(slot),
    numUsers: slot.numUsers,
    isAdded: slot.isAdded,
    maxContext,
    sampling,
    isPinned,
    group,
    expiresMs: slot.idleTimer?.expiresMs ?? null,
    loss: slot.loss,
    numLosses: slot.numLosses,
    heldBytes: slot.reservedBytes,
    model: isAlive(slot) ? slot.model : null,
    error: slot.error === null ? null : slot.error instanceof Error ? slot.error.message : String(slot.error),
  };
}
