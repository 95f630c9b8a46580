/** Objects by name, in a folder or a bucket. Calls reject on failures, and when the signal aborts. */
export interface ObjectStore {
  /** Null: there is none. Throws if it has more than `maxBytes`. */
  get(name: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array | null>;
  has(name: string, signal: AbortSignal): Promise<boolean>;
  /** Readers see the whole object or none. */
  put(name: string, bytes: Uint8Array, signal: AbortSignal): Promise<void>;
  /** An object that is gone already is no failure. */
  delete(name: string, signal: AbortSignal): Promise<void>;
  /** All objects whose names begin so. */
  list(prefix: string, signal: AbortSignal): Promise<ObjectEntry[]>;
}

export interface ObjectEntry {
  readonly name: string;
  readonly sizeBytes: number;
  readonly writtenMs: number;
}
