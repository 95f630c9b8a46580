/** The record of a fleet's releases as it was read. */
export interface StoredRecord {
  readonly text: string;
  /** Rises with each write. */
  readonly revision: number;
  /** Milliseconds since it was written. */
  readonly ageMs: number;
}

/** Keeps the record of releases and the files of adapters for all nodes. It is not trusted: what it holds is signed. */
export interface ReleaseStore {
  /** Null: nothing was published. */
  read(): Promise<StoredRecord | null>;
  /** Writes if `revision` is still the latest (0: there is none) and returns the new one; null: somebody else has written. */
  write(text: string, revision: number): Promise<number | null>;
  /** Calls back with the record there is and with each later one. */
  watch(onRecord: (record: StoredRecord) => void): void;
  /** Texts by which nodes announce themselves; those of silent nodes expire. */
  members(): Promise<readonly string[]>;
  /** Replaces the last report of this name. */
  report(name: string, text: string): Promise<void>;
  /** Resolves when all reports from now on are seen. */
  watchReports(onReport: (text: string) => void): Promise<{ stop(): void }>;
  hasFile(name: string, sizeBytes: number): Promise<boolean>;
  putFile(name: string, bytes: Uint8Array): Promise<void>;
  /** Null: there is no such file. */
  getFile(name: string): Promise<AsyncIterable<Uint8Array> | null>;
  deleteFile(name: string): Promise<void>;
}
