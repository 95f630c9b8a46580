/** Turns text into unit vectors of one space; deterministic to the last bit. */
export interface Embedder {
  /** Identifies the space; vectors of two spaces are never compared. */
  readonly fingerprint: string;
  readonly dim: number;
  /** Throws `invalid_text` for text without tokens. */
  embed(text: string): Float32Array | Promise<Float32Array>;
  /** For people, in statistics. Default: the fingerprint. */
  readonly name?: string;
  /** Called once, when the memory closes. */
  close?(): Promise<void>;
}
