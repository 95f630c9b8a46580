import type { ByteSource } from '../core/byte-source.ts';

export type FileKind = 'file' | 'folder' | 'link' | 'other';

export interface FileFacts {
  readonly kind: FileKind;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** A file being filled from a given byte on. */
export interface FileWriter {
  write(bytes: Uint8Array): Promise<void>;
  /** Returns when the bytes are on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The file system as the hub needs it. Failures are `RuvLLMError`s: `not_found`, `disk_full` or `io`. Paths use the
 * platform's own separator; only `join` builds them.
 */
export interface HubFiles {
  join(...parts: string[]): string;
  /** True for an existing regular file (links followed); expands a leading `~`. Synchronous: used while parsing. */
  isFile(path: string): boolean;
  /** An absolute path, with a leading `~` expanded. */
  absolutePath(path: string): string;
  /** Links are followed; null when nothing is there or a link dangles. */
  stat(path: string): Promise<FileFacts | null>;
  /** The path with every link resolved, or null when it does not exist. */
  realPath(path: string): Promise<string | null>;
  /** Entries sorted by name, links not followed; empty when the folder does not exist. */
  list(path: string): Promise<readonly { readonly name: string; readonly kind: FileKind }[]>;
  makeFolder(path: string): Promise<void>;
  /** At most `maxBytes` of a small text file; null when it does not exist. */
  readText(path: string, maxBytes: number): Promise<string | null>;
  /** Replaces the file atomically. */
  writeText(path: string, text: string): Promise<void>;
  /** Creates the file with this text; false when it exists already. Atomic between processes. */
  createExclusive(path: string, text: string): Promise<boolean>;
  /** Sets the modification time to now; false when the file is gone. */
  touch(path: string): Promise<boolean>;
  /** Opens for writing at `startBytes`, cutting off everything after it; creates the file when it is not there. */
  openWriter(path: string, startBytes: number): Promise<FileWriter>;
  readChunks(path: string): AsyncIterable<Uint8Array>;
  /** Atomic, replaces the target; the rename itself is flushed to the disk. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or link, never what a link points to; false when there was nothing. */
  remove(path: string): Promise<boolean>;
  /** Removes a folder if it is empty; false when it is not or does not exist. */
  removeEmptyFolder(path: string): Promise<boolean>;
  /** Removes a folder with everything in it; links inside are removed, not followed. */
  removeTree(path: string): Promise<void>;
  /** Makes `path` show the file `relativeTarget` (relative to `path`'s folder): a link, else a hard link, else a copy. */
  link(relativeTarget: string, path: string): Promise<void>;
  /** Bytes left for this user on the file system of `path`, or null where that cannot be told. */
  freeBytes(path: string): Promise<number | null>;
  openSource(path: string): ByteSource;
}

export type HashAlgorithm = 'sha1' | 'sha256' | 'sha512';

export interface Hasher {
  update(bytes: Uint8Array): void;
  /** Lower-case hexadecimal; the hasher is spent afterwards. */
  digest(): string;
}

export interface NpmOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Who holds a lock. `startToken` tells a process from a later one that got the same pid. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  readonly startToken: string;
}

/** Everything the hub takes from outside: files, network, hashing, time, the user's npm. */
export interface HubPlatform {
  readonly files: HubFiles;
  /** The default place of the model cache. */
  readonly cacheRoot: string;
  /** The file a Hugging Face login keeps its token in. */
  readonly tokenPath: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly identity: ProcessIdentity;
  /** True unless the process is known to be gone; a process of another host cannot be known. */
  isProcessAlive(identity: ProcessIdentity): boolean;
  fetch(url: string, init: RequestInit): Promise<Response>;
  createHasher(algorithm: HashAlgorithm): Hasher;
  gunzip(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Runs the user's npm without a shell; `not_found` when there is none. */
  runNpm(args: readonly string[], options: { folder: string; signal: AbortSignal | null }): Promise<NpmOutcome>;
  now(): number;
  /** Waits; rejects with `aborted` as soon as the signal fires. */
  sleep(delayMs: number, signal: AbortSignal | null): Promise<void>;
  /** Calls back once after the delay unless the returned function is called first. */
  startTimer(delayMs: number, callback: () => void): () => void;
  /** A name nobody else uses, [0-9a-f]+. */
  uniqueName(): string;
}
