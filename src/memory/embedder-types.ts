/** Turns text into unit vectors of one space; the same text gives the same bits in every process. */
export interface Embedder {
  /** Names the space: vectors of two fingerprints are never compared. */
  readonly fingerprint: string;
  readonly dim: number;
  /** Throws `invalid_text` for text with nothing in it to embed. */
  embed(text: string): Float32Array | Promise<Float32Array>;
  /** Whether it is in the thread of the store, which embeds with it by itself. Default false. */
  readonly isBesideStore?: boolean;
  /** Called once, with the end of the memory that it was given to. */
  close?(): Promise<void>;
}
