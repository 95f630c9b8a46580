/** Injected, because this folder has no cryptography. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

export interface MemoryServices {
  /** Milliseconds since 1970, UTC; may jump, backwards too. */
  now(): number;
  /** A UUIDv7, greater than the one before. */
  newId(): string;
  readonly sha256: Sha256;
}

/** Runs `task` once after `delayMs`; returns a function that cancels it. */
export type Schedule = (task: () => void, delayMs: number) => () => void;
