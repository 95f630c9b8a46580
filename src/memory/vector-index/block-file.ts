/** The arguments of `BlockFile.read`. */
export interface BlockRead {
  readonly block: number;
  readonly name: string;
  readonly into: Uint8Array;
}

/**
 * The storage of an index: numbered blocks of one size, each sealed with a name, so that a block of another place, file or time
 * is detected. Calls are synchronous.
 */
export interface BlockFile {
  /** Without the seal. */
  readonly blockBytes: number;
  readonly numBlocks: number;
  /** Fills `into` with the first bytes of a block; false: damaged or another name, and `into` is undefined. */
  read(block: number, name: string, into: Uint8Array): boolean;
  /** Reads many blocks, with more threads where that pays; returns a damaged one, or null. Default: `read` for each. */
  readMany?(wanted: readonly BlockRead[]): Promise<BlockRead | null>;
  /** Fills up with zeros; `block` is at most `numBlocks`. */
  write(block: number, name: string, bytes: Uint8Array): void;
  /** Makes all writes durable. */
  flush(): void;
}
