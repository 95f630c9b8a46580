/**
 * Where an index is kept: numbered blocks of one size, each sealed under a name, so that a block of another place, another file or
 * another time is not taken for the right one. Calls block: an index is opened and saved as a whole.
 */
export interface BlockFile {
  /** Of a block, as the index sees it. */
  readonly blockBytes: number;
  readonly numBlocks: number;
  /** The bytes written last under this name; null where they are damaged or were written under another. Valid until the next call. */
  read(block: number, name: string): Uint8Array | null;
  /** At most `blockBytes`, the rest is zeros; `block` is at most `numBlocks`. */
  write(block: number, name: string, bytes: Uint8Array): void;
  /** What was written is durable when this returns. */
  flush(): void;
}
