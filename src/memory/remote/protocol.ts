import type { Embedder } from '../embedder-types.ts';
import type { StaticEmbedder } from '../embedder/static-embedder.ts';
import type { AskMemory } from '../search/ask.ts';
import type { MemorySearch } from '../search/search.ts';
import type { MemoryStore } from '../types.ts';
import type { AuditArchive } from '../audit/index.ts';

/** The objects in the memory's thread. The caller compresses archives. */
export interface RemoteObjects {
  readonly store: MemoryStore;
  readonly archive: Required<Omit<AuditArchive, 'gzip' | 'gunzip'>>;
  readonly embedder: RemoteEmbedder;
  readonly finder: RemoteFinder;
  readonly keys: RemoteKeys;
  readonly backups: RemoteBackups;
}

/** A new master key: 32 bytes, or a passphrase. */
export type NewMasterKey = { readonly key: Uint8Array } | { readonly passphrase: string };

/** Where a backup goes. */
export interface BackupPlace {
  readonly root: string;
  /** Older ones are removed. Null: none. */
  readonly keep: number | null;
}

export interface BackupReport {
  readonly path: string;
  readonly createdMs: number;
  readonly numRecords: number;
  readonly sizeBytes: number;
}

interface RemoteBackups {
  write(place: BackupPlace): Promise<BackupReport>;
}

interface RemoteKeys {
  /** The memory stays usable; when it resolves, the old key no longer opens it. */
  rotate(to: NewMasterKey): Promise<void>;
}

/** Searches in the store's thread; only results are transferred. */
export interface RemoteFinder extends MemorySearch {
  readonly ask: AskMemory;
}

export interface RemoteEmbedder {
  /** Embeds with the token rows of a model from now on. */
  open(modelPath: string): Promise<Pick<Embedder, 'fingerprint' | 'dim'> & Pick<StaticEmbedder, 'common'>>;
  embed(text: string): Promise<Float32Array>;
}

type Methods = { readonly [O in keyof RemoteObjects]: Readonly<Record<keyof RemoteObjects[O], true>> };

/** All remote methods; a missing one does not compile. */
export const REMOTE_METHODS: Methods = {
  store: {
    put: true,
    putBuilt: true,
    get: true,
    find: true,
    count: true,
    nearest: true,
    match: true,
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
  embedder: { open: true, embed: true },
  finder: { search: true, ask: true },
  keys: { rotate: true },
  backups: { write: true },
};

/** All methods by `object.method`. */
export type FlatObjects = Record<string, (...args: readonly unknown[]) => Promise<unknown>>;

export const FLAT_METHODS = Object.fromEntries(
  Object.entries(REMOTE_METHODS).flatMap(([object, methods]) =>
    Object.keys(methods).map((method) => [`${object}.${method}`, true as const]),
  ),
);
