import type { ByteSource } from '../core/byte-source.ts';

export type FileKind = 'file' | 'folder' | 'link' | 'other';

export interface FileFacts {
  readonly kind: FileKind;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** A file written from a byte offset on. */
export interface FileWriter {
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when the bytes are on disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The file system of the hub. Failures are `RuvLLMError`s: `not_found`, `disk_full` or `io`. Paths use the platform's
 * separator; only `join` builds them.
 */
export interface HubFiles {
  join(...parts: string[]): string;
  /** True for an existing regular file (follows links); expands a leading `~`. Synchronous for use while parsing. */
  isFile(path: string): boolean;
  /** An absolute path, with a leading `~` expanded. */
  absolutePath(path: string): string;
  /** Follows links; null for a missing file or dangling link. */
  stat(path: string): Promise<FileFacts | null>;
  /** The path with all links resolved, or null if it does not exist. */
  realPath(path: string): Promise<string | null>;
  /** Entries sorted by name, links not followed; empty if the folder does not exist. */
  list(path: string): Promise<readonly { readonly name: string; readonly kind: FileKind }[]>;
  makeFolder(path: string): Promise<void>;
  /** At most `maxBytes` of a small text file; null if it does not exist. */
  readText(path: string, maxBytes: number): Promise<string | null>;
  /** Replaces the file atomically. */
  writeText(path: string, text: string): Promise<void>;
  /** Creates the file with this text; false if it exists. Atomic between processes. */
  createExclusive(path: string, text: string): Promise<boolean>;
  /** Sets the modification time to now; false if the file does not exist. */
  touch(path: string): Promise<boolean>;
  /** Opens for writing at `startBytes` and truncates the file there; creates a missing file. */
  openWriter(path: string, startBytes: number): Promise<FileWriter>;
  readChunks(path: string): AsyncIterable<Uint8Array>;
  /** Atomic, replaces the target, and flushes the rename to disk. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or link, never a link's target; false if it did not exist. */
  remove(path: string): Promise<boolean>;
  /** Removes an empty folder; false if it is not empty or does not exist. */
  removeEmptyFolder(path: string): Promise<boolean>;
  /** Removes a folder and its content; removes links inside without following them. */
  removeTree(path: string): Promise<void>;
  /** Makes `path` refer to `relativeTarget` (relative to `path`'s folder): a link, else a hard link, else a copy. */
  link(relativeTarget: string, path: string): Promise<void>;
  /** Free bytes for this user on the file system of `path`, or null if unknown. */
  freeBytes(path: string): Promise<number | null>;
  openSource(path: string): ByteSource;
}

export type HashAlgorithm = 'sha1' | 'sha256' | 'sha512';

export interface Hasher {
  update(bytes: Uint8Array): void;
  /** Lower-case hexadecimal; the hasher cannot be used afterwards. */
  digest(): string;
}

export interface NpmOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The owner of a lock. `startToken` distinguishes processes that had the same pid. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  readonly startToken: string;
}

/** External dependencies of the hub: files, network, hashing, time, the user's npm. */
export interface HubPlatform {
  readonly files: HubFiles;
  /** The default folder of the model cache. */
  readonly cacheRoot: string;
  /** The token file of a Hugging Face login. */
  readonly tokenPath: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly identity: ProcessIdentity;
  /** True unless the process is certainly gone; on another host this is unknown. */
  isProcessAlive(identity: ProcessIdentity): boolean;
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** As `fetch` without following redirects, but refuses hosts with an address outside the public Internet. */
  fetchPublic(url: string, init: RequestInit): Promise<Response>;
  createHasher(algorithm: HashAlgorithm): Hasher;
  gunzip(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Runs the user's npm without a shell; `not_found` if it is not installed. */
  runNpm(args: readonly string[], options: { folder: string; signal: AbortSignal | null }): Promise<NpmOutcome>;
  now(): number;
  /** Waits; rejects with `aborted` when the signal fires. */
  sleep(delayMs: number, signal: AbortSignal | null): Promise<void>;
  /** Calls back once after the delay unless the returned function is called first. */
  startTimer(delayMs: number, callback: () => void): () => void;
  /** A unique name, [0-9a-f]+. */
  uniqueName(): string;
}
