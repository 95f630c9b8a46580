import type { Embedder } from '../embedder-types.ts';
import type { AskMemory } from '../search/ask.ts';
import type { MemorySearch } from '../search/search.ts';
import type { MemoryStore } from '../types.ts';
import type { AuditArchive } from '../audit/index.ts';

/** What lives in the memory's thread. Archives are compressed by the caller, in whose process other threads do that. */
export interface RemoteObjects {
  readonly store: MemoryStore;
  readonly archive: Required<Omit<AuditArchive, 'gzip' | 'gunzip'>>;
  readonly embedder: RemoteEmbedder;
  readonly finder: RemoteFinder;
  readonly keys: RemoteKeys;
}

/** What opens a memory from now on: 32 bytes, or a passphrase. */
export type NewMasterKey = { readonly key: Uint8Array } | { readonly passphrase: string };

export interface RemoteKeys {
  /** The memory goes on meanwhile; when it resolves, the old key opens it no more. */
  rotate(to: NewMasterKey): Promise<void>;
}

/** Looks beside the store: only what was found goes over the border, and nothing of the looking is the caller's thread's. */
export interface RemoteFinder extends MemorySearch {
  readonly ask: AskMemory;
}

export interface RemoteEmbedder {
  /** Null: there is no model to embed with. */
  describe(): Promise<Pick<Embedder, 'fingerprint' | 'dim'> | null>;
  embed(text: string): Promise<Float32Array>;
}

type Methods = { readonly [O in keyof RemoteObjects]: Readonly<Record<keyof RemoteObjects[O], true>> };

/** Everything that can be asked, so that a method nobody carries over does not compile. */
export const REMOTE_METHODS: Methods = {
  store: {
    put: true,
    get: true,
    find: true,
    count: true,
    nearest: true,
    delete: true,
    putEdges: true,
    edgesOf: true,
    deleteEdges: true,
    sweepExpired: true,
    eraseTenant: true,
    stats: true,
    checkIntegrity: true,
    close: true,
  },
  archive: { write: true, read: true, delete: true, leftBehind: true, seal: true, unseal: true },
  embedder: { describe: true, embed: true },
  finder: { search: true, ask: true },
  keys: { rotate: true },
};

/** All methods by `object.method`, as they go over the border. */
export type FlatObjects = Record<string, (...args: readonly unknown[]) => Promise<unknown>>;

export const FLAT_METHODS = Object.fromEntries(
  Object.entries(REMOTE_METHODS).flatMap(([object, methods]) =>
    Object.keys(methods).map((method) => [`${object}.${method}`, true as const]),
  ),
);
