/** A block that is wanted, as `BlockFile.read` takes it. */
export interface BlockRead {
  readonly block: number;
  readonly name: string;
  readonly into: Uint8Array;
}

/**
 * Where an index is kept: numbered blocks of one size, each sealed under a name, so that a block of another place, another file or
 * another time is not taken for the right one. Calls block: an index is opened and saved as a whole.
 */
export interface BlockFile {
  /** Of a block, as the index sees it. */
  readonly blockBytes: number;
  readonly numBlocks: number;
  /** Fills `into` with the first bytes of a block; false: they are damaged or were written under another name, and `into` is anything. */
  read(block: number, name: string, into: Uint8Array): boolean;
  /** Many at once, with other threads where that pays; returns one that is damaged, or null. Without it, `read` is asked for each. */
  readMany?(wanted: readonly BlockRead[]): Promise<BlockRead | null>;
  /** At most `blockBytes`, the rest is zeros; `block` is at most `numBlocks`. */
  write(block: number, name: string, bytes: Uint8Array): void;
  /** What was written is durable when this returns. */
  flush(): void;
}
