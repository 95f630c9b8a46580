/** Turns text into unit vectors of one space; deterministic to the last bit. */
export interface Embedder {
  /** Identifies the space; vectors of two spaces are never compared. */
  readonly fingerprint: string;
  readonly dim: number;
  /** Throws `invalid_text` for text without tokens. */
  embed(text: string): Float32Array | Promise<Float32Array>;
  /** The same for a text that can wait, without taking time of the caller's thread. Default: `embed`. */
  embedLater?(text: string): Float32Array | Promise<Float32Array>;
  /** For people, in statistics. Default: the fingerprint. */
  readonly name?: string;
  /** Drops cached vectors; called after an erasure, because a cache does not know whose texts it has. Default: no cache. */
  forget?(): void;
  /** Called once, when the memory closes. */
  close?(): Promise<void>;
}
