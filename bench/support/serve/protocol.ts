import type { EngineStats } from 'ruvllm';

/** What a server process is asked to be. */
export type ServedKind =
  /** Hono alone: parses the body, answers with as many bytes as the others. */
  | { kind: 'plain' }
  /** Everything but a model: it says one word at once. Keys are files, as `ruvllm serve` keeps them; null: open. */
  | { kind: 'echo'; keyFolder: string | null }
  /** A real model with room for `numSequences` of `maxContext` tokens. */
  | { kind: 'model'; path: string; numSequences: number; maxContext: number };

export type ServedRequest =
  | { do: 'start'; what: ServedKind }
  /** With `collect` garbage goes first, so that what is seen is held by somebody. */
  | { do: 'measure'; collect: boolean }
  | { do: 'stop' };

/** What a server process knows of itself. */
export interface Measured {
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** The longest its main thread did not come round since the last collection, beyond the millisecond it waits anyway. */
  readonly loopMaxMs: number;
  readonly openRequests: number;
  /** null: it has no model. */
  readonly engine: EngineStats | null;
}

export interface ServedAnswer {
  readonly port?: number;
  readonly measured?: Measured;
  /** Of a key it made, when it has keys. */
  readonly token?: string;
  readonly error?: string;
}
