/** SHA-256 of some bytes: 32 bytes. Injected, for this folder has no cryptography of its own. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

/** What every part of the memory is given by its surroundings. */
export interface MemoryServices {
  /** Milliseconds since 1970, UTC; may jump, backwards too. */
  now(): number;
  /** A UUIDv7, greater than the one before. */
  newId(): string;
  readonly sha256: Sha256;
}

/** Runs `task` once, `delayMs` from now, unless it is cancelled by what it returns. */
export type Schedule = (task: () => void, delayMs: number) => () => void;
